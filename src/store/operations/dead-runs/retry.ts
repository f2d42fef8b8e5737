/**
 * Replaces a failed run in the DLQ with a new run that starts with the journal of the failed run (contract W 21.3). A
 * long journal is written in chunks, each in its own transaction. Until the last chunk, the new run is REVIVING.
 */
import { backlogKey } from '../../../engine/lanes/backlog-key.ts';
import type { Millis, ProjectId } from '../../../engine/model.ts';
import type { RetriedEntry, RunRetry, RunRetryResult } from '../../../engine/runs/dead/dead-run-store.ts';
import type { RunConfig } from '../../../workflow/model.ts';
import type { Transaction } from '../../driver.ts';
import { MessageAdmission } from '../lanes/admission.ts';
import { FlowLanes, flowRefsOf } from '../lanes/flow-lanes.ts';
import { WAIT_STATE } from '../lanes/wait-states.ts';
import { type Position, positionOfDlqId } from '../lists/page.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { savedState } from '../messages/accept.ts';
import { CONTENT_AT } from '../messages/columns.ts';
import { removeDead } from '../messages/dead.ts';
import { encodeNewMessage, type StoredNewMessage, weightOf } from '../messages/rows.ts';
import { write } from '../operation.ts';
import { CHUNK_WAIT_MS, cancelReviving } from '../runs/end.ts';
import { Journals } from '../runs/journals.ts';
import {
  encodeEntry,
  encodeRecord,
  encodeRun,
  REVIVING,
  RUN_STATE,
  type StoredEntry,
  type StoredRecord,
  type StoredRun,
} from '../runs/run-rows.ts';

export type StoredRetriedEntry =
  | { kind: 'shared'; key: number; entry: StoredEntry }
  | { kind: 'record'; record: StoredRecord; event?: 'WAITER_ADDED' | 'INVOKED' }
  | { kind: 'message'; message: StoredNewMessage };

interface RetryRunArgs
  extends Pick<RunRetry, 'projectId' | 'dlqId' | 'runKey' | 'isFirst' | 'isLast' | 'waiters' | 'invocations'> {
  run: StoredRun;
  journal: StoredRetriedEntry[];
  children: StoredNewMessage[];
  nowMs: number;
}

/**
 * Removes the entry from the DLQ and starts the run, or changes nothing. If the journal has several chunks, the last
 * chunk does so. Until then, no message of the run is sent, and lists do not show the run. If the next chunk does not
 * arrive, or is refused, the run is cancelled (`cancelRemaining`), and the entry stays in the DLQ.
 */
export const retryRun = write(
  {
    weight: ({ journal, children }) => {
      const { rows, bytes } = weightOf([...messagesIn(journal), ...children]);
      return { rows: Math.max(rows, journal.length), bytes };
    },
  },
  async (context: WriteContext, args: RetryRunArgs): Promise<RunRetryResult> => {
    const { tx } = context;
    const { projectId, dlqId, runKey, run, journal, children, isFirst, isLast, nowMs } = args;
    const position = positionOfDlqId(dlqId);
    if (!position) return { kind: 'missing' };
    const failedKey = await deadRunKey(tx, projectId, position);
    const isRefused = failedKey === undefined || (await isActive(tx, projectId, run.id));
    if (isRefused) {
      if (!isFirst) await cancelReviving(context, [runKey], nowMs);
      return { kind: failedKey === undefined ? 'missing' : 'idTaken' };
    }
    if (!isFirst && !(await isReviving(tx, runKey))) return { kind: 'lost' };
    const journals = isFirst ? journalsOfStart(context, args) : await Journals.of(context, runKey);
    const sent = messagesIn(journal);
    const messages = [...sent, ...children];
    const positions = new Map<StoredNewMessage, ReturnType<Journals['append']>>();
    for (const entry of journal) {
      if (entry.kind === 'message') positions.set(entry.message, journals.append(entry.message));
      else if (entry.kind === 'record') journals.record(entry.record, entry.event);
      else journals.share(entry.key, entry.entry);
    }
    for (const child of children) positions.set(child, journals.append(child));
    for (const { key, childKey } of args.invocations) journals.addInvoker(childKey, { key, parentKey: runKey });
    const admission = new MessageAdmission(context, nowMs);
    await admission.makeQueues(messages);
    await journals.save();
    const states = await admission.insert(messages);
    const saved = states.map((state, index) => savedState(state, positions.get(messages[index] as StoredNewMessage)));
    const result: RunRetryResult = {
      ...{ kind: 'retried', messages: saved.slice(0, sent.length) },
      children: saved.slice(sent.length),
    };
    if (!isLast) {
      await awaitNextChunk(tx, args);
      return result;
    }
    if (!isFirst) await startRevived(context, args);
    await addWaiters(tx, args);
    await nameSuccessor(tx, failedKey, run);
    // The entry is removed last: at every moment, one of the two runs must refer to the contents that they share.
    await removeDead(tx, [position.n]);
    return result;
  },
  ({ run, journal, children, ...rest }: RunRetry & { nowMs: Millis }) => ({
    ...rest,
    run: encodeRun(run),
    journal: journal.map(encodeRetriedEntry),
    children: children.map(encodeNewMessage),
  }),
);

function encodeRetriedEntry(entry: RetriedEntry): StoredRetriedEntry {
  switch (entry.kind) {
    case 'shared':
      return { kind: 'shared', key: entry.key, entry: encodeEntry(entry.entry) };
    case 'message':
      return { kind: 'message', message: encodeNewMessage(entry.message) };
    case 'record':
      return { ...entry, record: encodeRecord(entry.record) };
  }
}

function messagesIn(journal: readonly StoredRetriedEntry[]): StoredNewMessage[] {
  return journal.flatMap((entry) => (entry.kind === 'message' ? [entry.message] : []));
}

function journalsOfStart(context: WriteContext, { projectId, runKey, run, journal: [first] }: RetryRunArgs): Journals {
  if (first?.kind !== 'message' && first?.kind !== 'record')
    throw new Error('the first entry of a run cannot be shared');
  const { content } = first.kind === 'message' ? first.message : first.record;
  const journals = Journals.empty(context);
  journals.start({
    key: runKey,
    project_id: projectId,
    id: run.id,
    url: run.url,
    created_at_ms: run.createdAtMs,
    config: run.config,
    message_id: content[CONTENT_AT.id],
  });
  journals.logStart({ projectId, runKey, atMs: run.createdAtMs });
  return journals;
}

async function awaitNextChunk(tx: Transaction, { projectId, runKey, isFirst, nowMs }: RetryRunArgs): Promise<void> {
  const untilMs = nowMs + CHUNK_WAIT_MS;
  if (!isFirst) {
    await tx.send('update ending_runs set cancel_at_ms = ? where key = ?', [untilMs, runKey]);
    return;
  }
  await tx.send(`update runs set state = ${REVIVING} where key = ?`, [runKey]);
  await tx.insertMany('ending_runs', ['key', 'project_id', 'cancel_at_ms'], [[runKey, projectId, untilMs]]);
}

async function isReviving(tx: Transaction, runKey: number): Promise<boolean> {
  const rows = await tx.query(`select 1 as one from runs where key = ? and state = ${REVIVING}`, [runKey]);
  return rows.length > 0;
}

/** Makes a revived run active, so that its messages may be claimed. */
async function startRevived(context: WriteContext, { projectId, runKey, nowMs }: RetryRunArgs): Promise<void> {
  const { tx, due } = context;
  await tx.send(`update runs set state = ${RUN_STATE.RUN_STARTED} where key = ?`, [runKey]);
  await tx.send('delete from ending_runs where key = ?', [runKey]);
  const positions = await tx.query<{ origin: string; wait_state: number; flow_key: string | null; due_at_ms: number }>(
    'select origin, wait_state, flow_key, min(due_at_ms) as due_at_ms from messages where run_key = ? group by origin, wait_state, flow_key',
    [runKey],
  );
  for (const { origin, wait_state, due_at_ms } of positions) {
    if (wait_state === WAIT_STATE.origin) due.noteWaitingBacklog(backlogKey(projectId, origin));
    else if (wait_state === WAIT_STATE.due) due.note(due_at_ms);
  }
  const flows = new FlowLanes(tx, nowMs);
  await flows.load(flowRefsOf(positions.map(({ flow_key }) => ({ project_id: projectId, flow_key }))));
  await flows.save(due);
}

async function addWaiters(tx: Transaction, { projectId, runKey, waiters }: RetryRunArgs): Promise<void> {
  if (waiters.length === 0) return;
  await tx.insertMany(
    'waiters',
    ['key', 'project_id', 'run_key', 'event_id', 'deadline_ms'],
    waiters.map(({ key, eventId, deadlineMs }) => [key, projectId, runKey, eventId, deadlineMs]),
  );
}

async function deadRunKey(tx: Transaction, projectId: ProjectId, { n, timeMs }: Position): Promise<number | undefined> {
  const [row] = await tx.query<{ run_key: number }>(
    'select run_key from dead where key = ? and failed_at_ms = ? and project_id = ? and run_key is not null for update',
    [n, timeMs, projectId],
  );
  return row?.run_key;
}

/**
 * Saves the new run's id in the configuration of the failed run; nothing else uses that configuration any more. The
 * version is raised only so that a move of the project notices the changed row.
 */
async function nameSuccessor(tx: Transaction, failedKey: number, { id, createdAtMs }: StoredRun): Promise<void> {
  const [row] = await tx.query<{ config: string }>('select config from runs where key = ?', [failedKey]);
  if (!row) return;
  const config: RunConfig = { ...JSON.parse(row.config), successor: { id, createdAtMs } };
  await tx.send('update runs set config = ?, version = version + 1 where key = ?', [JSON.stringify(config), failedKey]);
}

async function isActive(tx: Transaction, projectId: ProjectId, id: string): Promise<boolean> {
  const rows = await tx.query(
    `select 1 as one from runs where project_id = ? and id = ? and state = ${RUN_STATE.RUN_STARTED}`,
    [projectId, id],
  );
  return rows.length > 0;
}
