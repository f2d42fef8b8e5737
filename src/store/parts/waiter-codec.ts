/** How a wait becomes rows; this runs in the caller's thread. */
import type { NewWaiter } from '../../engine/runs/stores.ts';
import { entryKeyOfResult } from '../../workflow/entry-keys.ts';
import { readStep } from '../../workflow/steps.ts';
import { encodeRecord } from '../operations/runs/run-rows.ts';
import type { StoredWait } from '../operations/waiters/register.ts';

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
