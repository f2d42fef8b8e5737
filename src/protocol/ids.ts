/** Generates ids, and reads the store key in a message id. */
import { Buffer } from 'node:buffer';

/** Returns `count` random bytes, cryptographically strong in production. */
export type RandomBytes = (count: number) => Uint8Array;

/** Bitcoin's base58: no `0`, `O`, `I`, `l`. */
const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const BASE = ALPHABET.length;
const CODES = Uint8Array.from(ALPHABET, (letter) => letter.charCodeAt(0));
/** The value of the base58 digit with each character code; -1 for other characters. */
const DIGITS = Int8Array.from({ length: 128 }, (_, code) => ALPHABET.indexOf(String.fromCharCode(code)));
/** Bytes below this limit are evenly spread over the digits; other bytes are dropped. */
const FAIR_BYTES = 256 - (256 % BASE);

const MESSAGE_PREFIX = 'msg_';
/** 58^10 exceeds the safe integers, so every key fits. */
const KEY_DIGITS = 10;
/** 22 × log2(58) = 128.9 random bits. */
const RANDOM_DIGITS = 22;
const MESSAGE_ID_LENGTH = MESSAGE_PREFIX.length + KEY_DIGITS + RANDOM_DIGITS;
/** Random digits of an id that is not a message id (contract M 3.3). */
const OTHER_DIGITS = 28;

/** One buffer for all calls: each call fills and reads it synchronously. */
const scratch = Buffer.alloc(64);

/**
 * A message id that contains its store key, so that a message is found by id without an index on ids. The id is `msg_`,
 * the key as ten base58 digits (most significant first), then 128 random bits. `key` is a safe integer, 0 or more.
 */
export function mintMessageId(key: number, random: RandomBytes): string {
  scratch.write(MESSAGE_PREFIX, 'latin1');
  let rest = key;
  for (let at = MESSAGE_PREFIX.length + KEY_DIGITS - 1; at >= MESSAGE_PREFIX.length; at--) {
    const digit = rest % BASE;
    scratch[at] = CODES[digit] ?? 0;
    rest = (rest - digit) / BASE;
  }
  fillRandom(scratch, MESSAGE_PREFIX.length + KEY_DIGITS, MESSAGE_ID_LENGTH, random);
  return scratch.toString('latin1', 0, MESSAGE_ID_LENGTH);
}

/** The key inside a message id; `undefined` for a text that is not a message id. */
export function keyOfMessageId(id: string): number | undefined {
  if (id.length !== MESSAGE_ID_LENGTH || !id.startsWith(MESSAGE_PREFIX)) return undefined;
  let key = 0;
  for (let at = MESSAGE_PREFIX.length; at < MESSAGE_ID_LENGTH; at++) {
    const digit = DIGITS[id.charCodeAt(at)] ?? -1;
    if (digit < 0) return undefined;
    if (at < MESSAGE_PREFIX.length + KEY_DIGITS) key = key * BASE + digit;
  }
  return key <= Number.MAX_SAFE_INTEGER ? key : undefined;
}

/** `length` base58 digits, each equally likely. */
export function randomBase58(length: number, random: RandomBytes): string {
  const digits = length <= scratch.length ? scratch : Buffer.alloc(length);
  fillRandom(digits, 0, length, random);
  return digits.toString('latin1', 0, length);
}

/** `sig_…` */
export function mintSigningKey(random: RandomBytes): string {
  return `sig_${randomBase58(OTHER_DIGITS, random)}`;
}

/** `jwt_…` */
export function mintJwtId(random: RandomBytes): string {
  return `jwt_${randomBase58(OTHER_DIGITS, random)}`;
}

/** `scd_…` */
export function mintScheduleId(random: RandomBytes): string {
  return `scd_${randomBase58(OTHER_DIGITS, random)}`;
}

/** `wfr_…`, for a workflow run without a given id (contract W 2). */
export function mintRunId(random: RandomBytes): string {
  return `wfr_${randomBase58(21, random)}`;
}

/** Fills `digits` from `start` to `end`. Taking every byte modulo 58 would favour the first digits of the alphabet. */
function fillRandom(digits: Uint8Array, start: number, end: number, random: RandomBytes): void {
  let at = start;
  while (at < end) {
    // One byte in ten is dropped; ten spare bytes make a second request rare.
    for (const byte of random(end - at + 10)) {
      if (byte >= FAIR_BYTES) continue;
      digits[at++] = CODES[byte % BASE] ?? 0;
      if (at === end) return;
    }
  }
}
