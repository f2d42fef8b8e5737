/**
 * Reads some members of a JSON object whose other members may be large, in one pass over the bytes, with memory only for
 * the wanted members. `JSON.parse` would build all members, and a body full of brackets would take fifty times its size
 * in memory.
 */
import { Buffer } from 'node:buffer';

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPENING_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

/** Longer values are skipped, because no wanted value is this long. */
const VALUE_BYTES_MAX = 4096;

/**
 * The members of the object in `json` that have one of `names` and are strings, numbers, booleans or null. If a name
 * occurs twice, its last value counts, as in `JSON.parse`. Returns undefined if `json` is not an object. Skipped values
 * are not checked.
 */
export function scalarMembers(json: Uint8Array, names: ReadonlySet<string>): Record<string, unknown> | undefined {
  const members: Record<string, unknown> = Object.create(null);
  const isObject = visitMembers(json, (name, start, end) => {
    if (names.has(name)) members[name] = scalarOf(json, start, end);
  });
  return isObject ? members : undefined;
}

/** The unparsed JSON of the member `wanted`, of any size and type. Other rules are as for `scalarMembers`. */
export function memberJson(json: Uint8Array, wanted: string): Uint8Array | undefined {
  let member: Uint8Array | undefined;
  const isObject = visitMembers(json, (name, start, end) => {
    if (name === wanted) member = json.subarray(start, end);
  });
  return isObject ? member : undefined;
}

/** Calls `visit` with the position of each member's value. Returns false when `json` is not an object. */
function visitMembers(json: Uint8Array, visit: (name: string, start: number, end: number) => void): boolean {
  let at = skipBlanks(json, 0);
  if (json[at] !== OPENING_BRACE) return false;
  at = skipBlanks(json, at + 1);
  while (json[at] === QUOTE) {
    const nameEnd = endOfText(json, at);
    const name = scalarOf(json, at, nameEnd);
    at = skipBlanks(json, nameEnd);
    if (json[at] !== COLON) return false;
    const start = skipBlanks(json, at + 1);
    const end = endOfValue(json, start);
    if (typeof name === 'string') visit(name, start, end);
    at = skipBlanks(json, end);
    if (json[at] !== COMMA) break;
    at = skipBlanks(json, at + 1);
  }
  return json[at] === CLOSING_BRACE && skipBlanks(json, at + 1) === json.length;
}

function scalarOf(json: Uint8Array, start: number, end: number): unknown {
  const first = json[start];
  if (end - start > VALUE_BYTES_MAX || first === OPENING_BRACE || first === OPENING_BRACKET) return undefined;
  try {
    return JSON.parse(Buffer.from(json.buffer, json.byteOffset + start, end - start).toString('utf8'));
  } catch {
    return undefined; // expected: a body can be anything
  }
}

/** The index after the value that starts at `start`. */
function endOfValue(json: Uint8Array, start: number): number {
  let at = start;
  let depth = 0;
  for (; at < json.length; at += 1) {
    const byte = json[at];
    if (byte === QUOTE) {
      at = endOfText(json, at) - 1;
    } else if (byte === OPENING_BRACE || byte === OPENING_BRACKET) {
      depth += 1;
    } else if (byte === CLOSING_BRACE || byte === CLOSING_BRACKET) {
      if (depth === 0) return trimmed(json, start, at);
      depth -= 1;
    } else if (byte === COMMA && depth === 0) {
      return trimmed(json, start, at);
    }
  }
  return at;
}

/** The index after the closing quote of the string that starts at `start`. */
function endOfText(json: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1;
  return at + 1;
}

function trimmed(json: Uint8Array, start: number, end: number): number {
  let at = end;
  while (at > start && isBlank(json[at - 1])) at -= 1;
  return at;
}

function skipBlanks(json: Uint8Array, start: number): number {
  let at = start;
  while (at < json.length && isBlank(json[at])) at += 1;
  return at;
}

function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
