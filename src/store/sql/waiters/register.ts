/** How does a wait enter the journal of its run: as a waiter, or with the result that it took from the run's mail? */
import type { MessageId } from '../../../engine/model.ts';
import type { StoreLimits } from '../../../engine/stores.ts';
import type { SqlValue, Transaction } from '../../driver.ts';
import { insertMessages, type SavedAs } from '../accept.ts';
import type { WriteContext } from '../log-writer.ts';
import { CONTENT_COLUMNS, codeOfLogState, type StoredNewMessage } from '../rows.ts';
import { ENTRY_KIND } from '../runs/run-rows.ts';
import { deleteMail, nextMailKey } from './mail.ts';

/** The record of a wait as rows: values of `CONTENT_COLUMNS`, and its place in the journal. */
export interface StoredWait {
  key: number;
  projectId: number;
  content: SqlValue[];
  runKey: number;
  /** Null: it fits any. */
  runVersion: number | null;
  slot: string;
  /** The slot of its result. */
  resultSlot: string;
  eventId: string;
  deadlineMs: number;
}

export interface AddWaiterArgs {
  wait: StoredWait;
  /** Null: there is to be no mail. */
  taken: { mailKey: number; result: StoredNewMessage } | null;
  limits: StoreLimits;
  nowMs: number;
}

export type AddWaiterAnswer =
  | { kind: 'registered' }
  | { kind: 'answered'; saved: SavedAs }
  | { kind: 'duplicate'; messageId: MessageId }
  | { kind: 'over' }
  | { kind: 'changed' };

interface RunRow {
  version: number;
  entries: number;
}

export async function addWaiter(
  context: WriteContext,
  { wait, taken, limits, nowMs }: AddWaiterArgs,
): Promise<AddWaiterAnswer> {
  const { tx } = context;
  const [run] = await tx.query<RunRow>(
    'select version, entries from runs where key = ? and project_id = ? and state = 1 for update',
    [wait.runKey, wait.projectId],
  );
  if (!run) return { kind: 'over' };
  const present = await registeredBefore(tx, wait);
  if (present !== undefined) return { kind: 'duplicate', messageId: present };
  if (wait.runVersion !== null && wait.runVersion !== run.version) return { kind: 'changed' };
  if ((await nextMailKey(tx, wait)) !== (taken?.mailKey ?? null)) return { kind: 'changed' };
  await record(context, wait, run, nowMs);
  if (!taken) {
    await tx.insertMany(
      'waiters',
      ['key', 'project_id', 'run_key', 'event_id', 'deadline_ms'],
      [[wait.key, wait.projectId, wait.runKey, wait.eventId, wait.deadlineMs]],
    );
    return { kind: 'registered' };
  }
  await deleteMail(tx, taken.mailKey);
  const [saved] = await insertMessages(context, [taken.result], { limits, nowMs });
  if (saved === undefined) throw new Error('the result of a wait was not saved');
  return { kind: 'answered', saved };
}

/** The wait of the same step, or, where that step has a result without one, the result. */
async function registeredBefore(
  tx: Transaction,
  { runKey, slot, resultSlot }: StoredWait,
): Promise<MessageId | undefined> {
  const rows = await tx.query<{ slot: string; id: string }>(
    // The order keeps the planner from walking the whole journal instead of its slots.
    `select j.slot, c.id from journal j join contents c on c.key = j.key where j.run_key = ? and j.slot in (??)
     order by j.run_key, j.slot`,
    [runKey, [slot, resultSlot]],
  );
  return (rows.find((row) => row.slot === slot) ?? rows[0])?.id;
}

async function record(
  { tx, logs }: WriteContext,
  { key, projectId, content, runKey, slot }: StoredWait,
  run: RunRow,
  nowMs: number,
): Promise<void> {
  await tx.insertMany('contents', CONTENT_COLUMNS, [content]);
  await tx.insertMany(
    'journal',
    ['run_key', 'position', 'kind', 'key', 'slot', 'at_ms'],
    [[runKey, run.entries, ENTRY_KIND.wait, key, slot, nowMs]],
  );
  await tx.run('update runs set entries = entries + 1 where key = ?', [runKey]);
  await logs.append(tx, [
    { projectId, key: runKey, runKey, events: [[nowMs, codeOfLogState('WAITER_ADDED')]], floorMs: 0 },
  ]);
}
