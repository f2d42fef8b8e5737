/** Encodes the journal of a run as deliveries contain it (contract W 8.1). */
import { Buffer } from 'node:buffer';
import { base64BytesOf } from '../protocol/bodies.ts';
import type { CallType } from '../protocol/options/settings.ts';
import type { EntryKind, JournalEntry } from './model.ts';

/** The call type of an entry in deliveries; undefined if deliveries omit the entry. */
export const DELIVERED_CALL_TYPES: Readonly<Record<EntryKind, CallType | undefined>> = {
  initial: 'step',
  step: 'step',
  plan: 'step',
  stepConfig: 'stepConfig',
  toCallback: 'toCallback',
  fromCallback: 'fromCallback',
  wait: undefined,
  invoke: undefined,
};

const MESSAGE_ID_LENGTH = 36;
const FRAME_LENGTH = Buffer.byteLength('{"messageId":"","body":"","callType":""},');

/** Bytes that an entry adds to a delivered body, including its comma or bracket. */
export function entryBytesOf(bodyBytes: number, callType: CallType = 'step'): number {
  return FRAME_LENGTH + MESSAGE_ID_LENGTH + 4 * Math.ceil(bodyBytes / 3) + callType.length;
}

/**
 * One element of the journal's array, without commas or brackets. Ids are ASCII without quotes, so they need no escaping.
 */
export function encodeEntry({ messageId, body, callType }: Omit<JournalEntry, 'position'>): Buffer {
  return Buffer.concat([
    Buffer.from(`{"messageId":"${messageId}","body":"`),
    base64BytesOf(body),
    Buffer.from(`","callType":"${callType}"}`),
  ]);
}

const OPEN = Buffer.from('[');
const COMMA = Buffer.from(',');
const CLOSE = Buffer.from(']');

/** Joins encoded elements to a JSON array. */
export function joinEntries(elements: readonly Uint8Array[]): Buffer {
  const chunks: Uint8Array[] = [OPEN];
  for (const [index, element] of elements.entries()) {
    if (index > 0) chunks.push(COMMA);
    chunks.push(element);
  }
  chunks.push(CLOSE);
  return Buffer.concat(chunks);
}
