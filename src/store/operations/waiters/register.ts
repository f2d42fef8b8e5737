/** Adds a wait to the journal of its run: as a waiter, or together with its result from the run's pending events. */
import type { Millis, NewMessage } from '../../../engine/model.ts';
import type { NewWaiter, WaitOutcome } from '../../../engine/runs/stores.ts';
import { entryKeyOfResult } from '../../../workflow/entry-keys.ts';
import { readStep } from '../../../workflow/steps.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { insertMessages } from '../messages/accept.ts';
import type { NewMessageRow } from '../messages/columns.ts';
import { encodeNewMessage, type StoredNewMessage, weightOf } from '../messages/rows.ts';
import { write } from '../operation.ts';
import type { MessageOfRun } from '../runs/batch-runs.ts';
import { Journals } from '../runs/journals.ts';
import { encodeRecord, type StoredRecord } from '../runs/run-rows.ts';
import { deletePendingEvent, nextPendingEventKey } from './pending-events.ts';

interface StoredWait {
  projectId: number;
  record: StoredRecord;
  /** The entry key of the result of the wait. */
  resultEntryKey: string;
  eventId: string;
  deadlineMs: number;
}

export interface AddWaiterArgs {
  wait: StoredWait;
  /** The pending event that ends the wait at once, with its result; null if the caller expects none. */
  taken: { pendingEventKey: number; result: StoredNewMessage } | null;
  nowMs: number;
}

interface AddWaiterInput {
  waiter: NewWaiter;
  taken?: { pendingEventKey: number; result: NewMessage } | undefined;
  nowMs: Millis;
}

/**
 * Registers the wait if it has no pending event. With `taken`, consumes the given pending event, if it is the oldest, and
 * saves the result. The outcome is `changed` if the run or its pending events have changed.
 */
export const addWaiter = write(
  {
    weight: ({ wait, taken }) => ({ ...weightOf(taken ? [wait.record, taken.result] : [wait.record]), rows: 2 }),
    touches: ({ wait }) => ({ projects: [wait.projectId] }),
  },
  async (context: WriteContext, { wait, taken, nowMs }: AddWaiterArgs): Promise<WaitOutcome> => {
    const { tx, limits } = context;
    const { record, projectId, resultEntryKey, eventId, deadlineMs } = wait;
    const { runKey } = record.entry;
    const waiting = messageOfEntry(record.entry);
    const ended = messageOfEntry({ ...record.entry, entryKey: resultEntryKey });
    const journals = await Journals.load(context, [waiting, ended], limits.journalBytesMax);
    if (!journals) throw new Error('a wait came without its entry');
    const refusal = journals.refusalOf([waiting]);
    if (refusal?.kind === 'runOver') return { kind: 'over' };
    const present = journals.duplicateOf(waiting) ?? journals.duplicateOf(ended);
    if (present) return { kind: 'duplicate', messageId: present.messageId };
    if (refusal?.kind === 'runChanged') return { kind: 'changed' };
    if (refusal?.kind === 'journalFull') return refusal;
    if ((await nextPendingEventKey(tx, { runKey, eventId })) !== (taken?.pendingEventKey ?? null))
      return { kind: 'changed' };
    journals.record(record, 'WAITER_ADDED');
    await journals.save();
    if (!taken) {
      const row = [record.key, projectId, runKey, eventId, deadlineMs];
      await tx.insertMany('waiters', ['key', 'project_id', 'run_key', 'event_id', 'deadline_ms'], [row]);
      return { kind: 'registered' };
    }
    await deletePendingEvent(tx, taken.pendingEventKey);
    const [saved = { state: 'dropped' as const }] = await insertMessages(context, [taken.result], nowMs);
    return { kind: 'notified', saved };
  },
  ({ waiter, taken, nowMs }: AddWaiterInput) => ({
    wait: encodeWait(waiter),
    taken: taken ? { pendingEventKey: taken.pendingEventKey, result: encodeNewMessage(taken.result) } : null,
    nowMs,
  }),
);

function encodeWait({ record, eventId, deadlineMs }: NewWaiter): StoredWait {
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

/** A placeholder: journals read the row of a message only if the message starts a run. */
const NO_ROW = [] as unknown as NewMessageRow;

/** The part of a message that journals read, for an entry that is not a message. */
function messageOfEntry(entry: StoredRecord['entry']): MessageOfRun {
  return { message: NO_ROW, entry };
}
