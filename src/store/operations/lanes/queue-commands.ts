/** Saving, pausing, deleting and listing queues (contract M 14, 22.7 to 22.12). */
import type { Queue } from '../../../engine/lanes/lanes.ts';
import type { ProjectId } from '../../../engine/model.ts';
import type { Queries, SqlValue } from '../../driver.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { cancelCandidates } from '../messages/cancel.ts';
import { longRead, write } from '../operation.ts';
import { flowRefsOf } from './flow-lanes.ts';
import { BLOCKER_FIELDS, type BlockerRow, decodeBlocker } from './queue-blocker.ts';
import { countQueues, insertQueue, type QueueRef } from './queue-lanes.ts';
import { releaseNext } from './release-next.ts';
import { WAIT_STATE, waitStateBehindQueue } from './wait-states.ts';

interface QueueName {
  projectId: ProjectId;
  name: string;
}

export interface SaveQueueArgs extends QueueName {
  parallelism: number;
  isPaused: boolean;
  nowMs: number;
}

/** Creates the queue or replaces its settings. The limit of queues refuses only new queues. */
export const saveQueue = write(
  async (context: WriteContext, args: SaveQueueArgs): Promise<'saved' | 'tooManyQueues'> => {
    const { projectId, parallelism, isPaused, nowMs } = args;
    const queue = await idOf(context.tx, args);
    if (!queue) {
      const { queuesMax } = context.limits;
      if (queuesMax > 0 && (await countQueues(context.tx, projectId)) >= queuesMax) return 'tooManyQueues';
      await insertQueue(context.tx, args);
      return 'saved';
    }
    await context.tx.send('update queues set parallelism = ?, updated_at_ms = ? where project_id = ? and id = ?', [
      parallelism,
      nowMs,
      projectId,
      queue.queueId,
    ]);
    await setPaused(context, queue, args);
    // A higher parallelism takes effect at once.
    if (!isPaused) await releaseNext(context, { queues: [queue] }, nowMs);
    return 'saved';
  },
);

export const setQueuePaused = write(
  async (
    context: WriteContext,
    args: QueueName & { isPaused: boolean; nowMs: number },
  ): Promise<'saved' | 'missing'> => {
    const queue = await idOf(context.tx, args);
    if (!queue) return 'missing';
    await setPaused(context, queue, args);
    return 'saved';
  },
);

/** Writes nothing when the queue is already in the requested state. */
async function setPaused(
  context: WriteContext,
  queue: QueueRef,
  args: { isPaused: boolean; nowMs: number },
): Promise<void> {
  const { projectId, queueId } = queue;
  const changed = await context.tx.run(
    'update queues set paused = ?, updated_at_ms = ? where project_id = ? and id = ? and paused <> ?',
    [args.isPaused ? 1 : 0, args.nowMs, projectId, queueId, args.isPaused ? 1 : 0],
  );
  if (changed === 0) return;
  if (args.isPaused) await pauseHolders(context, queue, args.nowMs);
  else await resume(context, queue, args.nowMs);
}

/** Makes messages that have a permit wait for the queue. A message in flight waits for the queue if it needs a retry. */
async function pauseHolders(context: WriteContext, queue: QueueRef, nowMs: number): Promise<void> {
  const { projectId, queueId } = queue;
  const started = await context.tx.query<{ flow_key: string }>(
    `select distinct flow_key from messages
     where project_id = ? and queue_id = ? and queue_permit = key and claim_token is null and flow_key is not null`,
    [projectId, queueId],
  );
  await context.tx.send(
    `update messages set wait_state = ${WAIT_STATE.queue}
     where project_id = ? and queue_id = ? and queue_permit = key and claim_token is null`,
    [projectId, queueId],
  );
  const flowKeys = started.map(({ flow_key }) => ({ projectId, key: flow_key }));
  await releaseNext(context, { flowKeys }, nowMs);
}

/** Continues with the earliest unfinished message; messages that have a permit come first. */
async function resume(context: WriteContext, queue: QueueRef, nowMs: number): Promise<void> {
  const { projectId, queueId } = queue;
  const started = await context.tx.query<{ project_id: number; due_at_ms: number; flow_key: string | null }>(
    `select project_id, due_at_ms, flow_key from messages
     where project_id = ? and queue_id = ? and queue_permit = key and claim_token is null and wait_state = ${WAIT_STATE.queue}`,
    [projectId, queueId],
  );
  await context.tx.send(
    `update messages set wait_state = case when flow_key is null then ${WAIT_STATE.due} else ${WAIT_STATE.flow} end
     where project_id = ? and queue_id = ? and queue_permit = key and claim_token is null and wait_state = ${WAIT_STATE.queue}`,
    [projectId, queueId],
  );
  for (const { due_at_ms, flow_key } of started) if (flow_key === null) context.due.note(due_at_ms);
  await releaseNext(context, { queues: [queue], flowKeys: flowRefsOf(started) }, nowMs);
}

/**
 * Hides the queue at once; the caller then cancels its messages with `emptyQueue`. Returns undefined if the queue does
 * not exist. If the caller crashes before all messages are cancelled, `dropExpired` cancels the others; a worker that
 * detects the crash calls `dropExpired` at once.
 */
export const deleteQueue = write(
  async (
    context: WriteContext,
    { projectId, name, nowMs }: QueueName & { nowMs: number },
  ): Promise<QueueRef | undefined> => {
    const queue = await idOf(context.tx, { projectId, name });
    if (!queue) return undefined;
    // The queue is paused, so that no message starts during the cancel in chunks, or after a crash between two chunks.
    await pauseHolders(context, queue, nowMs);
    await context.tx.send(
      'update queues set deleted = 1, paused = 1, updated_at_ms = ? where project_id = ? and id = ?',
      [nowMs, projectId, queue.queueId],
    );
    return queue;
  },
);

/**
 * Cancels up to `count` messages of a deleted queue, each like a single cancel. The queue is removed with its last
 * message. Messages of workflow runs leave the queue and continue, because only a whole run can be cancelled. Returns
 * whether to call `emptyQueue` again at once.
 */
export const emptyQueue = write(
  { weight: ({ count }) => ({ rows: count }) },
  async (
    context: WriteContext,
    { projectId, queueId, count, nowMs }: QueueRef & { count: number; nowMs: number },
  ): Promise<boolean> => {
    const { tx } = context;
    const rows = await tx.query<{ key: number }>(
      `select key from messages where project_id = ? and queue_id = ? and claim_token is null and wait_state = ${WAIT_STATE.queue}
     order by queue_position limit ?`,
      [projectId, queueId, count],
    );
    const started = await tx.query<{ key: number }>(
      `select key from messages
     where project_id = ? and queue_id = ? and queue_permit = key and cancel_requested_at_ms is null limit ?`,
      [projectId, queueId, count],
    );
    const keys = [...new Set([...rows, ...started].map(({ key }) => key))];
    if (keys.length > 0) {
      await cancelCandidates(context, { projectId, keys, nowMs });
      await removeRunMessages(context, keys, nowMs);
    }
    if (rows.length === count || started.length === count) return true;
    await tx.send(
      `delete from queues where project_id = ? and id = ? and deleted = 1
       and not exists lookup (select 1 from messages m where m.project_id = queues.project_id and m.queue_id = queues.id and m.claim_token is null and m.wait_state = ${WAIT_STATE.queue})
       and not exists lookup (select 1 from messages m where m.project_id = queues.project_id and m.queue_id = queues.id and m.queue_permit is not null)`,
      [projectId, queueId],
    );
    return false;
  },
);

async function removeRunMessages(context: WriteContext, keys: readonly number[], nowMs: number): Promise<void> {
  const { tx, due } = context;
  const leaving = await tx.query<{
    key: number;
    project_id: number;
    due_at_ms: number;
    flow_key: string | null;
    wait_state: number;
  }>(
    // The order keeps the planner from reading all messages of runs.
    'select key, project_id, due_at_ms, flow_key, wait_state from messages where key in (??) and run_key is not null order by key',
    [keys],
  );
  if (leaving.length === 0) return;
  await tx.updateMany(
    'messages',
    'key',
    ['queue_id', 'queue_position', 'queue_permit', 'wait_state'],
    leaving.map(({ key, flow_key, wait_state }): SqlValue[] => {
      return [key, null, null, null, wait_state === WAIT_STATE.queue ? waitStateBehindQueue(flow_key) : wait_state];
    }),
  );
  for (const { due_at_ms, flow_key, wait_state } of leaving) {
    if (wait_state === WAIT_STATE.queue && flow_key === null) due.note(due_at_ms);
  }
  await releaseNext(context, { flowKeys: flowRefsOf(leaving) }, nowMs);
}

/**
 * Deleted queues that have messages to cancel, because the deletion was interrupted, or that have no messages. Queues
 * that only wait for attempts in flight or for callbacks are skipped, so they never delay other queues.
 */
export function deletedQueues(queries: Queries, limit: number): Promise<{ project_id: number; id: number }[]> {
  return queries.query(
    // The query has no `exists`, because a planner may evaluate an `exists` for all queues at once, by reading all
    // messages.
    `select q.project_id, q.id from queues q where q.deleted = 1 and (
       (select 1 from messages m
         where m.project_id = q.project_id and m.queue_id = q.id and m.claim_token is null and m.wait_state = ${WAIT_STATE.queue} limit 1) is not null
       or (select 1 from messages m
         where m.project_id = q.project_id and m.queue_id = q.id and m.queue_permit = m.key and m.cancel_requested_at_ms is null limit 1) is not null
       or (select 1 from messages m
         where m.project_id = q.project_id and m.queue_id = q.id and m.queue_permit is not null limit 1) is null)
     order by q.project_id, q.id limit ?`,
    [limit],
  );
}

export interface QueueRow extends BlockerRow {
  name: string;
  parallelism: number;
  paused: number;
  created_at_ms: number;
  updated_at_ms: number;
  lag: number;
}

/**
 * The first parameter is the current time. `lag` counts the messages that wait for the queue, by an index alone, and the
 * messages that have a permit. Callbacks are not counted: their permit has the key of another message.
 */
const QUEUE_FIELDS = `q.name, q.parallelism, q.paused, q.created_at_ms, q.updated_at_ms,
  (select count(*) from messages m
   where m.project_id = q.project_id and m.queue_id = q.id and m.claim_token is null and m.wait_state = ${WAIT_STATE.queue})
  + (select count(case when m.queue_permit = m.key and not (m.claim_token is null and m.wait_state = ${WAIT_STATE.queue}) then 1 end)
   from messages m where m.project_id = q.project_id and m.queue_id = q.id and m.queue_permit is not null) as lag,
  ${BLOCKER_FIELDS}`;

export const findQueue = longRead(
  async (
    queries: Queries,
    { projectId, name, nowMs }: QueueName & { nowMs: number },
  ): Promise<QueueRow | undefined> => {
    const [row] = await queries.query<QueueRow>(
      `select ${QUEUE_FIELDS} from queues q where q.project_id = ? and q.deleted = 0 and q.name = ?`,
      [nowMs, projectId, name],
    );
    return row;
  },
  (row) => row && decodeQueue(row),
);

export interface ListQueuesArgs {
  projectId: ProjectId;
  after?: string;
  count?: number;
  nowMs: number;
}

/** Up to `count` queues after `after`, by name; default: all. */
export const listQueues = longRead(
  (
    queries: Queries,
    { projectId, after = '', count = Number.MAX_SAFE_INTEGER, nowMs }: ListQueuesArgs,
  ): Promise<QueueRow[]> => {
    return queries.query<QueueRow>(
      `select ${QUEUE_FIELDS} from queues q where q.project_id = ? and q.deleted = 0 and q.name > ?
     order by q.name limit ?`,
      [nowMs, projectId, after, count],
    );
  },
  (rows) => rows.map(decodeQueue),
);

export function decodeQueue(row: QueueRow): Queue {
  return {
    name: row.name,
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    parallelism: row.parallelism,
    isPaused: row.paused === 1,
    lag: row.lag,
    ...decodeBlocker(row),
  };
}

async function idOf(queries: Queries, { projectId, name }: QueueName): Promise<QueueRef | undefined> {
  const [row] = await queries.query<{ id: number }>(
    'select id from queues where project_id = ? and deleted = 0 and name = ? for update',
    [projectId, name],
  );
  return row && { projectId, queueId: row.id };
}
