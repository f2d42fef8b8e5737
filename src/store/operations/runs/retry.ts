/** How does a failed run leave the DLQ, and how does a new run begin with its journal (contract W 21.3)? */
import type { ProjectId } from '../../../engine/model.ts';
import type { RetriedAs } from '../../../engine/runs/dead-run-store.ts';
import type { RunConfig } from '../../../workflow/model.ts';
import type { Transaction } from '../../driver.ts';
import { Entry } from '../lanes/entry.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { savedAt } from '../messages/accept.ts';
import { removeDead } from '../messages/dead.ts';
import type { StoredNewMessage } from '../messages/rows.ts';
import { write } from '../operation.ts';
import type { Position } from '../page.ts';
import { Journals } from './journals.ts';
import { RUN_STATE, type StoredEntry, type StoredRecord, type StoredRun } from './run-rows.ts';

export type StoredRetriedEntry =
  | { kind: 'shared'; key: number; entry: StoredEntry }
  | {
      kind: 'record';
      record: StoredRecord;
      waiter: { eventId: string; deadlineMs: number } | null;
      childKey: number | null;
    }
  | { kind: 'message'; message: StoredNewMessage };

export interface RetryRunArgs {
  projectId: ProjectId;
  place: Position;
  runKey: number;
  /** Id of its first entry. */
  messageId: string;
  run: StoredRun;
  journal: StoredRetriedEntry[];
  children: StoredNewMessage[];
  nowMs: number;
}

export const retryRun = write(async (context: WriteContext, args: RetryRunArgs): Promise<RetriedAs> => {
  const { tx } = context;
  const { projectId, place, runKey, run, journal, children, nowMs } = args;
  const failedKey = await deadRunKey(tx, projectId, place);
  if (failedKey === undefined) return { kind: 'missing' };
  if (await isActive(tx, projectId, run.id)) return { kind: 'idTaken' };
  const journals = Journals.empty(context);
  journals.begin({
    key: runKey,
    project_id: projectId,
    id: run.id,
    url: run.url,
    created_at_ms: run.createdAtMs,
    config: run.config,
    message_id: args.messageId,
  });
  journals.logStart({ projectId, runKey, atMs: run.createdAtMs });
  const sent: StoredNewMessage[] = [];
  const places: ReturnType<Journals['append']>[] = [];
  for (const entry of journal) {
    if (entry.kind === 'message') {
      places.push(journals.append(entry.message));
      sent.push(entry.message);
    } else {
      enter(journals, entry);
    }
  }
  for (const child of children) places.push(journals.append(child));
  const messages = [...sent, ...children];
  const entry = new Entry(context, nowMs);
  await entry.loadQueues(messages);
  for (const message of messages) await entry.hasQueue(message, 0);
  await journals.save();
  const states = await entry.insert(messages);
  await addWaiters(tx, { projectId, runKey, journal });
  await nameSuccessor(tx, failedKey, run);
  // Only now: at every moment, one of the two runs must refer to the contents that they share.
  await removeDead(tx, [place.n]);
  const saved = states.map((state, index) => savedAt(state, places[index]));
  return { kind: 'retried', messages: saved.slice(0, sent.length), children: saved.slice(sent.length) };
});

function enter(journals: Journals, entry: Exclude<StoredRetriedEntry, { kind: 'message' }>): void {
  if (entry.kind === 'shared') {
    journals.share(entry.key, entry.entry);
    return;
  }
  const { record, waiter, childKey } = entry;
  if (waiter) {
    journals.record(record, 'WAITER_ADDED');
  } else if (childKey !== null) {
    journals.record(record, 'INVOKED');
    journals.awaitEnd(childKey, record);
  } else {
    journals.record(record);
  }
}

async function addWaiters(
  tx: Transaction,
  { projectId, runKey, journal }: Pick<RetryRunArgs, 'projectId' | 'runKey' | 'journal'>,
): Promise<void> {
  const waiters = journal.flatMap((entry) =>
    entry.kind === 'record' && entry.waiter
      ? [[entry.record.key, projectId, runKey, entry.waiter.eventId, entry.waiter.deadlineMs]]
      : [],
  );
  if (waiters.length === 0) return;
  await tx.insertMany('waiters', ['key', 'project_id', 'run_key', 'event_id', 'deadline_ms'], waiters);
}

async function deadRunKey(tx: Transaction, projectId: ProjectId, { n, timeMs }: Position): Promise<number | undefined> {
  const [row] = await tx.query<{ run_key: number }>(
    'select run_key from dead where key = ? and failed_at_ms = ? and project_id = ? and run_key is not null for update',
    [n, timeMs, projectId],
  );
  return row?.run_key;
}

/** Saves the new run's id in the configuration of the failed run, which decides nothing any more. */
async function nameSuccessor(tx: Transaction, failedKey: number, { id, createdAtMs }: StoredRun): Promise<void> {
  const [row] = await tx.query<{ config: string }>('select config from runs where key = ?', [failedKey]);
  if (!row) return;
  const config: RunConfig = { ...JSON.parse(row.config), successor: { id, createdAtMs } };
  await tx.send('update runs set config = ? where key = ?', [JSON.stringify(config), failedKey]);
}

async function isActive(tx: Transaction, projectId: ProjectId, id: string): Promise<boolean> {
  const rows = await tx.query(
    `select 1 as one from runs where project_id = ? and id = ? and state = ${RUN_STATE.RUN_STARTED}`,
    [projectId, id],
  );
  return rows.length > 0;
}
