/** The tokens and headers with which an endpoint saves results of steps during a call (contract K 2). */
import { Buffer } from 'node:buffer';
import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto';
import { memo } from '../memo.ts';
import type { HeaderMap, RunSettings } from '../options/settings.ts';

/** Identifies a claim of a message of a run. All members are safe integers. */
export interface CheckpointClaim {
  projectId: number;
  runKey: number;
  key: number;
  claimToken: number;
  /** The number of the worker that makes the call, counted within its process: from 0, below 2^24. */
  worker: number;
}

/** Four numbers as doubles, which can represent every safe integer, and the worker. */
const PAYLOAD_BYTES = 4 * 8 + 3;
/** 128 bits, which cannot be guessed. */
const MAC_BYTES = 16;
const TOKEN = /^[A-Za-z0-9_-]{68}$/;
/** Signed texts for other purposes begin differently, so their signatures are not valid for a token. */
const PURPOSE = 'waypost checkpoint\n';

const keyObjectOf = memo((signingKey) => createSecretKey(signingKey, 'utf8'));

/** Whether deliveries of the message have a checkpoint token: only if a library reads them as the journal of its run. */
export function takesCheckpoints({ callType, init }: RunSettings): boolean {
  return (callType === 'step' || callType === 'fromCallback') && init !== 'unknown';
}

/** A token that authorizes its bearer to save checkpoints for as long as `claim` is valid. */
export function mintCheckpointToken(claim: CheckpointClaim, signingKey: string): string {
  const token = Buffer.alloc(PAYLOAD_BYTES + MAC_BYTES);
  token.writeDoubleBE(claim.projectId, 0);
  token.writeDoubleBE(claim.runKey, 8);
  token.writeDoubleBE(claim.key, 16);
  token.writeDoubleBE(claim.claimToken, 24);
  token.writeUIntBE(claim.worker, 32, 3);
  macOf(token.subarray(0, PAYLOAD_BYTES), signingKey).copy(token, PAYLOAD_BYTES);
  return token.toString('base64url');
}

/**
 * The claim in a token; `undefined` if none of the project's signing keys has signed it. For an unknown project,
 * `signingKeysOf` returns an empty list.
 */
export function readCheckpointToken(
  text: string,
  signingKeysOf: (projectId: number) => readonly string[],
): CheckpointClaim | undefined {
  const token = bytesOf(text);
  if (!token) return undefined;
  const claim = claimOf(token);
  const payload = token.subarray(0, PAYLOAD_BYTES);
  const mac = token.subarray(PAYLOAD_BYTES);
  const isOurs = signingKeysOf(claim.projectId).some((key) => timingSafeEqual(mac, macOf(payload, key)));
  return isOurs ? claim : undefined;
}

/** The claim in a token whose signature is not checked; `undefined` if `text` does not have the form of a token. */
export function decodeCheckpointClaim(text: string): CheckpointClaim | undefined {
  const token = bytesOf(text);
  return token && claimOf(token);
}

function bytesOf(text: string): Buffer | undefined {
  return TOKEN.test(text) ? Buffer.from(text, 'base64url') : undefined;
}

function claimOf(token: Buffer): CheckpointClaim {
  return {
    projectId: token.readDoubleBE(0),
    runKey: token.readDoubleBE(8),
    key: token.readDoubleBE(16),
    claimToken: token.readDoubleBE(24),
    worker: token.readUIntBE(32, 3),
  };
}

function macOf(payload: Uint8Array, signingKey: string): Buffer {
  const mac = createHmac('sha256', keyObjectOf(signingKey)).update(PURPOSE).update(payload).digest();
  return mac.subarray(0, MAC_BYTES);
}

const END = 'Workflow-End';

/** The token in a response that ends its run, with either prefix (contract W 1.5). */
export function endTokenOf(header: HeaderMap): string | undefined {
  return (header[`Upstash-${END}`] ?? header[`Waypost-${END}`])?.[0]?.trim();
}

/**
 * Maximum size of a last step in the response that ends a run. The step is parsed synchronously between other work.
 * Deliveries announce the limit; only a library that receives the limit may send the step in this response.
 */
export const END_STEP_BYTES_MAX = 16 * 1024;

/** The number of bytes of the last step in the body: `undefined` without a step, `NaN` if the header is malformed. */
export function endStepBytesOf(header: HeaderMap): number | undefined {
  const text = (header[`Upstash-${END}-Step`] ?? header[`Waypost-${END}-Step`])?.[0];
  if (text === undefined) return undefined;
  return /^[0-9]{1,9}$/.test(text.trim()) ? Number(text) : Number.NaN;
}

/** Whether the response reports that the code does not fit the journal of its run, with either prefix (contract W 1.5). */
export function reportsCodeChange(header: HeaderMap): boolean {
  const value = header['Upstash-Workflow-Code-Changed'] ?? header['Waypost-Workflow-Code-Changed'];
  return value?.[0]?.trim().toLowerCase() === 'true';
}

const END_NAMES: ReadonlySet<string> = new Set([`upstash-${END}`.toLowerCase(), `waypost-${END}`.toLowerCase()]);
export const END_NAME_LENGTH = `Upstash-${END}`.length;

/** Whether `name`, in any letter case, is the header that `endTokenOf` reads. */
export function isEndHeader(name: string): boolean {
  return END_NAMES.has(name.toLowerCase());
}
