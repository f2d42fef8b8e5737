/** How waits and waiters become rows and back; in the caller's thread, like all of it. */
import type { Mail, NewWaiter, Waiter } from '../engine/run-stores.ts';
import { slotOfResult } from '../workflow/slots.ts';
import { readStep } from '../workflow/steps.ts';
import { decodeMessage } from './sql/rows.ts';
import { encodeRecord } from './sql/runs/run-rows.ts';
import type { MailRow } from './sql/waiters/mail.ts';
import type { StoredWait } from './sql/waiters/register.ts';
import type { WaiterRow } from './sql/waiters/waiters.ts';

export function encodeWait({ record, eventId, deadlineMs }: NewWaiter): StoredWait {
  const { key, projectId, body } = record.message;
  const step = readStep(body);
  if (!step) throw new Error(`the record ${key} names no step`);
  return { projectId, record: encodeRecord(record), resultSlot: slotOfResult(step.stepId), eventId, deadlineMs };
}

export function decodeWaiter(row: WaiterRow): Waiter {
  return { eventId: row.event_id, deadlineMs: row.deadline_ms, record: decodeMessage(row) };
}

export function decodeMail({ key, body }: MailRow): Mail {
  return { key, body: body ?? new Uint8Array(0) };
}
