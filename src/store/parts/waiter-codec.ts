/** How waits and waiters become rows and back; this all runs in the caller's thread. */
import type { NewWaiter, PendingEvent, Waiter } from '../../engine/runs/stores.ts';
import { entryKeyOfResult } from '../../workflow/entry-keys.ts';
import { readStep } from '../../workflow/steps.ts';
import { decodeMessage } from '../operations/messages/rows.ts';
import { encodeRecord } from '../operations/runs/run-rows.ts';
import type { PendingEventRow } from '../operations/waiters/pending-events.ts';
import type { StoredWait } from '../operations/waiters/register.ts';
import type { WaiterRow } from '../operations/waiters/waiters.ts';

export function encodeWait({ record, eventId, deadlineMs }: NewWaiter): StoredWait {
  const { key, projectId, body } = record.message;
  const step = readStep(body);
  if (!step) throw new Error(`the record ${key} names no step`);
  return {
    projectId,
    record: encodeRecord(record),
    resultEntryKey: entryKeyOfResult(step.stepId),
    eventId,
    deadlineMs,
  };
}

export function decodeWaiter(row: WaiterRow): Waiter {
  return { eventId: row.event_id, deadlineMs: row.deadline_ms, record: decodeMessage(row) };
}

export function decodePendingEvent({ key, body }: PendingEventRow): PendingEvent {
  return { key, body: body ?? new Uint8Array(0) };
}
