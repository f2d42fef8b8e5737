/** The messages that bring a run the result of a wait, made from what the wait was registered with. */
import { Buffer } from 'node:buffer';
import type { WaitPart } from '../../protocol/settings.ts';
import { notifiedStep, timedOutStep } from '../../workflow/waits.ts';
import type { FollowUp, Message, Millis } from '../model.ts';
import { resultOf } from './record-results.ts';

/** The result of a wait that was notified of `event`. */
export function notifiedResult(record: Message, event: Uint8Array, atMs: Millis): FollowUp {
  const wait = waitOf(record);
  return resultOf(record, wait.notified, notifiedStep(record.body, wait.eventId, event), atMs);
}

/** The result of a wait whose deadline has come. */
export function timedOutResult(record: Message, atMs: Millis): FollowUp {
  const { timedOut, timeoutBody, eventId } = waitOf(record);
  const body = timeoutBody === undefined ? timedOutStep(record.body, eventId) : Buffer.from(timeoutBody, 'base64');
  return resultOf(record, timedOut, body, atMs);
}

/** What a wait was registered with. */
function waitOf({ key, settings }: Message): WaitPart {
  if (!settings.wait) throw new Error(`the record ${key} is not of a wait`);
  return settings.wait;
}
