/** The tokens and headers with which an endpoint keeps the results of steps within one call (contract K 2). */
import { Buffer } from 'node:buffer';
import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto';
import { memo } from '../memo.ts';
import type { HeaderMap, RunPart } from '../options/settings.ts';

/** Which claim of which message of which run. All are safe integers. */
export interface CheckpointClaim {
  projectId: number;
  runKey: number;
  key: number;
  claimToken: number;
  /** The worker of its process that makes the call, counted from 0: below 2^24. */
  worker: number;
}

/** Four numbers, each as a double, which holds every safe integer, and the worker. */
const PAYLOAD_BYTES = 4 * 8 + 3;
/** 128 bits: nobody guesses it. */
const MAC_BYTES = 16;
const TOKEN = /^[A-Za-z0-9_-]{68}$/;
/** No text that is signed for another purpose with the same key begins like this. */
const PURPOSE = 'waypost checkpoint\n';

const keyObjectOf = memo((signingKey) => createSecretKey(signingKey, 'utf8'));

/** Whether deliveries of such messages carry a token: those that a library takes for the journal of its run. */
export function takesCheckpoints({ callType, init }: RunPart): boolean {
  return (callType === 'step' || callType === 'fromCallback') && init !== 'unknown';
}

/** The token for `claim`, which whoever has it may use as long as the claim stands. */
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
 * What a token is for; `undefined`: it was made with none of the signing keys of its project. `signingKeysOf` answers none
 * for a project that does not exist.
 */
export function readCheckpointToken(
  text: string,
  signingKeysOf: (projectId: number) => readonly string[],
): CheckpointClaim | undefined {
  const token = bytesOf(text);
  if (!token) return undefined;
  const claim = claimOf(token);
  const payload = token.subarray(0, PAYLOAD_BYTES);
  const given = token.subarray(PAYLOAD_BYTES);
  const isOurs = signingKeysOf(claim.projectId).some((key) => timingSafeEqual(given, macOf(payload, key)));
  return isOurs ? claim : undefined;
}

/** What a text in the form of a token names, whoever made it; `undefined`: it is no such text. */
export function claimIn(text: string): CheckpointClaim | undefined {
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

/** The token of an answer that ends its run; either prefix is understood (contract W 1.5). */
export function endTokenOf(header: HeaderMap): string | undefined {
  return (header[`Upstash-${END}`] ?? header[`Waypost-${END}`])?.[0]?.trim();
}

/**
 * The most bytes that a step may have that comes with the end of its run: it is parsed at once, amid other work. Deliveries
 * say so, and only then a step may come like this.
 */
export const END_STEP_BYTES_MAX = 16 * 1024;

/** How much of the answer's body is the last step; `undefined`: nothing. `NaN`: it does not say how much. */
export function endStepBytesOf(header: HeaderMap): number | undefined {
  const text = (header[`Upstash-${END}-Step`] ?? header[`Waypost-${END}-Step`])?.[0];
  if (text === undefined) return undefined;
  return /^[0-9]{1,9}$/.test(text.trim()) ? Number(text) : Number.NaN;
}

/** Whether the workflow's code no longer fits the journal of its run; either prefix is understood (contract W 1.5). */
export function saysCodeChanged(header: HeaderMap): boolean {
  const value = header['Upstash-Workflow-Code-Changed'] ?? header['Waypost-Workflow-Code-Changed'];
  return value?.[0]?.trim().toLowerCase() === 'true';
}

const END_NAMES: ReadonlySet<string> = new Set([`upstash-${END}`.toLowerCase(), `waypost-${END}`.toLowerCase()]);
export const END_NAME_LENGTH = `Upstash-${END}`.length;

/** Whether `name`, in any letter case, is the header of such an answer. */
export function isEndHeader(name: string): boolean {
  return END_NAMES.has(name.toLowerCase());
}
