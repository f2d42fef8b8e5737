/** Finds a message by its id, or the messages of a bulk cancel. */
import type { AttributeFilter } from '../../../engine/lists/filters.ts';
import type { LiveMessage } from '../../../engine/lists/unfinished.ts';
import type { InProject, Message, MessageId, MessageKey, Millis, ProjectId } from '../../../engine/model.ts';
import { keyOfMessageId } from '../../../protocol/ids.ts';
import type { Queries } from '../../driver.ts';
import {
  decodeFlowKey,
  decodeFlowState,
  type FlowKeyView,
  type FlowStateView,
  findKey,
} from '../lanes/flow-commands.ts';
import { BLOCKER_FIELDS, type BlockerRow, decodeBlocker } from '../lanes/queue-blocker.ts';
import { WAIT_STATE } from '../lanes/wait-states.ts';
import { addCondition, contentConditions } from '../lists/filter.ts';
import { keysOfWindow, type WindowKeys } from '../lists/windows.ts';
import { longRead, read } from '../operation.ts';
import { CONTENT_FIELDS, type ContentRow, codeOfLogState, decodeMessage } from './rows.ts';

interface FindArgs {
  projectId: ProjectId;
  id: MessageId;
  deliveredSinceMs: Millis;
}

/** Finds a message that is unfinished, or was delivered at `deliveredSinceMs` or later. */
export const find = read(
  async (queries: Queries, { projectId, id, deliveredSinceMs }: FindArgs): Promise<ContentRow | undefined> => {
    const key = keyOfMessageId(id);
    if (key === undefined) return undefined;
    const [row] = await queries.query<ContentRow>(
      `select ${CONTENT_FIELDS} from contents c
     where c.key = ? and c.project_id = ? and c.id = ?
       and ((select 1 from messages m where m.key = c.key) is not null
         or (select 1 from logs l where l.message_key = c.key and l.state = ? and l.at_ms >= ? limit 1) is not null)`,
      [key, projectId, id, codeOfLogState('DELIVERED'), deliveredSinceMs],
    );
    return row;
  },
  (row): Message | undefined => row && decodeMessage(row),
);

/** Finds a message that is still stored, finished or not: a message is stored until its log expires. */
export const findStored = read(
  async (queries: Queries, { projectId, id }: InProject & { id: MessageId }): Promise<ContentRow | undefined> => {
    const [row] = await queries.query<ContentRow>(
      `select ${CONTENT_FIELDS} from contents c where c.key = ? and c.project_id = ? and c.id = ?`,
      [keyOfMessageId(id) ?? -1, projectId, id],
    );
    return row;
  },
  (row): Message | undefined => row && decodeMessage(row),
);

/** Ids of the latest replays of a message, newest first. */
export const listReplays = read(
  async (queries: Queries, { projectId, id }: InProject & { id: MessageId }): Promise<MessageId[]> => {
    const rows = await queries.query<{ id: string }>(
      'select id from contents where replay_of = ? and project_id = ? order by key desc limit ?',
      [keyOfMessageId(id) ?? -1, projectId, REPLAYS_MAX],
    );
    return rows.map((row) => row.id);
  },
);

/** Replays that one read returns. */
const REPLAYS_MAX = 100;

export interface LiveRow extends ContentRow {
  retried: number;
  /** Only read for a single message: lists have no messages of runs. */
  parkings?: number | null;
  due_at_ms: number;
  wait_state: number;
  queue_id: number | null;
  queue_position: number | null;
  queue_permit: number | null;
  flow_key: string | null;
  claimed_at_ms: number | null;
  cancel_requested_at_ms: number | null;
}

interface FindLiveArgs {
  projectId: ProjectId;
  id: MessageId;
  nowMs: Millis;
}

/** An unfinished message, and the lane that it waits for. */
export interface LiveRows {
  message: LiveRow;
  queue?: { parallelism: number; paused: number; ahead?: number } & Partial<BlockerRow>;
  key?: FlowStateView | FlowKeyView;
}

/** Finds an unfinished message and its wait state (P14). Returns undefined if the message is finished or unknown. */
export const findLive = longRead(
  async (queries: Queries, { projectId, id, nowMs }: FindLiveArgs): Promise<LiveRows | undefined> => {
    const messageKey = keyOfMessageId(id);
    if (messageKey === undefined) return undefined;
    const [message] = await queries.query<LiveRow>(
      `select ${CONTENT_FIELDS}, m.retried, m.parkings, m.due_at_ms, m.wait_state, m.queue_id, m.queue_position, m.queue_permit, m.flow_key,
       m.claimed_at_ms, m.cancel_requested_at_ms
     from messages m lookup contents c on (c.key = m.key)
     where m.key = ? and m.project_id = ? and c.id = ?`,
      [messageKey, projectId, id],
    );
    if (!message) return undefined;
    const { wait_state, flow_key, claimed_at_ms } = message;
    if (claimed_at_ms !== null) return { message };
    if (wait_state === WAIT_STATE.queue) return { message, ...(await queueBefore(queries, message, nowMs)) };
    if (wait_state !== WAIT_STATE.flow || flow_key === null) return { message };
    const key = await findKey(queries, { projectId, key: flow_key, nowMs });
    return key ? { message, key } : { message };
  },
  (rows, { nowMs }) => rows && decodeLive(rows, nowMs),
);

async function queueBefore(queries: Queries, message: LiveRow, nowMs: number): Promise<Pick<LiveRows, 'queue'>> {
  const [queue] = await queries.query<{ parallelism: number; paused: number; ahead: number } & BlockerRow>(
    `select q.parallelism, q.paused,
       (select count(*) from messages m
        where m.project_id = q.project_id and m.queue_id = q.id and m.claim_token is null and m.wait_state = ${WAIT_STATE.queue}
          and m.queue_permit is null and m.queue_position < ?)
       + (select count(distinct m.queue_permit) from messages m
        where m.project_id = q.project_id and m.queue_id = q.id and m.queue_permit is not null and m.queue_permit <> ?) as ahead,
       ${BLOCKER_FIELDS}
     from queues q where q.project_id = ? and q.id = ?`,
    [message.queue_position, message.key, nowMs, message.project_id, message.queue_id],
  );
  return queue ? { queue } : {};
}

export function decodeLive(rows: LiveRows, nowMs: Millis): LiveMessage {
  const { message } = rows;
  return {
    message: decodeMessage(message),
    retried: message.retried,
    state: stateOf(message, rows, nowMs),
    cancelRequested: message.cancel_requested_at_ms !== null,
    ...(message.parkings && { isParked: true }),
  };
}

function stateOf(message: LiveRow, { queue, key }: Partial<LiveRows>, nowMs: Millis): LiveMessage['state'] {
  const { due_at_ms: dueAtMs, claimed_at_ms: claimedAtMs } = message;
  if (claimedAtMs !== null) return { kind: 'claimed', claimedAtMs };
  if (queue) {
    const { paused, ahead, parallelism, blocker_id = null, blocked_until_ms = null } = queue;
    return {
      kind: 'queue',
      dueAtMs,
      isPaused: paused === 1,
      hasPermit: message.queue_permit !== null,
      ...(ahead !== undefined && { ahead }),
      parallelism,
      ...decodeBlocker({ blocker_id, blocked_until_ms }),
    };
  }
  if (key)
    return {
      kind: 'flow',
      dueAtMs,
      key: 'wait_list_size' in key ? decodeFlowKey(key, nowMs) : decodeFlowState(key, nowMs),
    };
  if (message.wait_state === WAIT_STATE.origin) return { kind: 'origin', dueAtMs };
  return { kind: message.wait_state === WAIT_STATE.project ? 'project' : 'due', dueAtMs };
}

interface CandidatesArgs {
  projectId: ProjectId;
  filter: AttributeFilter;
  afterKey: MessageKey;
  limit: number;
}

/** Finds the keys of messages that a bulk cancel may cancel, oldest first, in one window of the table. */
export const findCandidates = longRead((queries: Queries, args: CandidatesArgs): Promise<WindowKeys> => {
  const { projectId, filter } = args;
  const conditions = contentConditions(filter);
  addCondition(conditions, 'w.project_id = ? and w.cancel_requested_at_ms is null and w.run_key is null', projectId);
  if (filter.fromMs !== undefined) addCondition(conditions, 'c.created_at_ms >= ?', filter.fromMs);
  if (filter.toMs !== undefined) addCondition(conditions, 'c.created_at_ms <= ?', filter.toMs);
  return keysOfWindow(queries, args, {
    table: 'messages',
    reads: ['project_id', 'cancel_requested_at_ms', 'run_key'],
    joins: 'lookup contents c on (c.key = w.key)',
    filter: conditions,
  });
});
