/** How waits and waiters become rows and back; in the caller's thread, like all of it. */
import type { Mail, NewWaiter, Waiter } from '../engine/run-stores.ts';
import { readStep, slotOfResult } from '../workflow/steps.ts';
import { encodeContent } from './sql/content-rows.ts';
import { decodeMessage } from './sql/rows.ts';
import type { MailRow } from './sql/waiters/mail.ts';
import type { StoredWait } from './sql/waiters/register.ts';
import type { WaiterRow } from './sql/waiters/waiters.ts';

export function encodeWait({ record: { message, entry }, eventId, deadlineMs }: NewWaiter): StoredWait {
  const step = readStep(message.body);
  if (!step) throw new Error(`the record ${message.key} names no step`);
  return {
    key: message.key,
    projectId: message.projectId,
    content: encodeContent(message),
    runKey: entry.runKey,
    runVersion: entry.runVersion ?? null,
    slot: entry.slot,
    resultSlot: slotOfResult(step.stepId),
    eventId,
    deadlineMs,
  };
}

export function decodeWaiter(row: WaiterRow): Waiter {
  return { eventId: row.event_id, deadlineMs: row.deadline_ms, record: decodeMessage(row) };
}

export function decodeMail({ key, body }: MailRow): Mail {
  return { key, body: body ?? new Uint8Array(0) };
}
