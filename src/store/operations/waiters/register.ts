/** How does a wait enter the journal of its run: as a waiter, or with the result that it took from the run's pending events? */
import type { Millis, NewMessage } from '../../../engine/model.ts';
import type { NewWaiter, Waiting } from '../../../engine/runs/stores.ts';
import { entryKeyOfResult } from '../../../workflow/entry-keys.ts';
import { readStep } from '../../../workflow/steps.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { insertMessages } from '../messages/accept.ts';
import type { NewMessageRow } from '../messages/columns.ts';
import { encodeNewMessage, type StoredNewMessage, weightOf } from '../messages/rows.ts';
import { write } from '../operation.ts';
import type { ForRun } from '../runs/batch-runs.ts';
import { Journals } from '../runs/journals.ts';
import { encodeRecord, type StoredRecord } from '../runs/run-rows.ts';
import { deletePendingEvent, nextPendingEventKey } from './pending-events.ts';

interface StoredWait {
  projectId: number;
  record: StoredRecord;
  /** The entry key that its result will have. */
  resultEntryKey: string;
  eventId: string;
  deadlineMs: number;
}

export interface AddWaiterArgs {
  wait: StoredWait;
  /** Null: the caller expects that there is no pending event. */
  taken: { pendingEventKey: number; result: StoredNewMessage } | null;
  nowMs: number;
}

interface AddWaiterGiven {
  waiter: NewWaiter;
  taken?: { pendingEventKey: number; result: NewMessage } | undefined;
  nowMs: Millis;
}

/**
 * Registers the wait if there is no pending event for it. With `taken`: takes that event, if it is the oldest, and saves `result`.
 */
export const addWaiter = write(
  {
    weight: ({ wait, taken }) => ({ ...weightOf(taken ? [wait.record, taken.result] : [wait.record]), rows: 2 }),
    touches: ({ wait }) => ({ projects: [wait.projectId] }),
  },
  async (context: WriteContext, { wait, taken, nowMs }: AddWaiterArgs): Promise<Waiting> => {
    const { tx, limits } = context;
    const { record, projectId, resultEntryKey, eventId, deadlineMs } = wait;
    const { runKey } = record.entry;
    const waiting = entryOnly(record.entry);
    const ended = entryOnly({ ...record.entry, entryKey: resultEntryKey });
    const journals = await Journals.load(context, [waiting, ended], limits.journalBytesMax);
    if (!journals) throw new Error('a wait came without its entry');
    const refusal = journals.refusalOf([waiting]);
    if (refusal?.kind === 'runOver') return { kind: 'over' };
    const present = journals.takenBy(waiting) ?? journals.takenBy(ended);
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
    return { kind: 'answered', saved };
  },
  ({ waiter, taken, nowMs }: AddWaiterGiven) => ({
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

/** Only for a message that begins a run is the row read. */
const NO_ROW = [] as unknown as NewMessageRow;

/** The part of a message that journals read, for an entry that is no message. */
function entryOnly(entry: StoredRecord['entry']): ForRun {
  return { message: NO_ROW, entry };
}
