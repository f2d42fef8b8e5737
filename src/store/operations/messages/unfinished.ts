/** Lists the unfinished messages of a project, newest first, each with its state and the lane that it waits for. */
import type { AttributeFilter } from '../../../engine/lists/filters.ts';
import type { PageRequest } from '../../../engine/lists/page.ts';
import type { UnfinishedFilter, UnfinishedMessage, UnfinishedState } from '../../../engine/lists/unfinished.ts';
import type { InProjectAt, MessageId, MessageKey, Millis, ProjectId } from '../../../engine/model.ts';
import type { Queries, SqlParam } from '../../driver.ts';
import { type FlowStateView, flowStatesOf } from '../lanes/flow-commands.ts';
import { WAIT_STATE } from '../lanes/wait-states.ts';
import { addCondition, type Conditions, contentConditions } from '../lists/filter.ts';
import { cutBySizes, cutPage, type PageRows, type Position, type Slice } from '../lists/page.ts';
import { messageRefsOf } from '../lists/read-page.ts';
import { pagedRead } from '../operation.ts';
import { decodeLive, type LiveRow } from './find.ts';
import { CONTENT_FIELDS, type ContentRow } from './rows.ts';

/**
 * The `Standing` of a row of messages `w`, in SQL. The parameter is the current time. A message with a flow-control key
 * that is not due yet waits for its due time, not for the key.
 */
export const STANDING_SQL = `case when w.claim_token is not null then 'active'
  when w.wait_state = ${WAIT_STATE.due} or (w.wait_state = ${WAIT_STATE.flow} and w.due_at_ms > ?) then 'waiting' else 'held' end`;

export interface ListUnfinishedArgs {
  projectId: ProjectId;
  filter: AttributeFilter;
  messages?: { keys: MessageKey[]; ids: MessageId[] };
  states?: UnfinishedState[];
  nowMs: number;
  /** The position of a message is its key; its time is not used. */
  slice: Slice;
  /** How many messages to examine, of all projects. */
  window: number;
}

type StateRow = Omit<LiveRow, keyof ContentRow> &
  Position & { project_id: number; standing: UnfinishedState; bytes: number };

export type UnfinishedRow = StateRow & LiveRow;

export interface UnfinishedRows extends PageRows<UnfinishedRow> {
  queues: { id: number; parallelism: number; paused: number }[];
  keys: FlowStateView[];
  bytes: number;
}

const READ =
  'key, project_id, bytes, retried, due_at_ms, wait_state, queue_id, queue_position, queue_permit, flow_key, claimed_at_ms, claim_token, cancel_requested_at_ms, run_key';

const SELECTED = `0 as "timeMs", w.key as n, w.project_id, w.bytes, w.retried, w.due_at_ms, w.wait_state, w.queue_id,
  w.queue_position, w.queue_permit, w.flow_key, w.claimed_at_ms, w.cancel_requested_at_ms`;

/** Messages examined for a page: first a few, which fill most pages, then the most that one page may examine. */
const FIRST_WINDOW = 1_000;
const WINDOW = 10_000;

/** Bodies are not read. */
const FIELDS_WITHOUT_BODY = CONTENT_FIELDS.replace('c.body', 'null as body');

async function unfinishedOf(queries: Queries, args: ListUnfinishedArgs): Promise<UnfinishedRows> {
  const { projectId, slice } = args;
  const found = await statesOf(queries, args);
  const contents = await queries.query<ContentRow>(
    `select ${FIELDS_WITHOUT_BODY} from contents c where c.key in (??)`,
    [found.rows.map(({ n }) => n)],
  );
  const contentByKey = new Map(contents.map((content) => [content.key, content]));
  const rows = found.rows.flatMap((row) => {
    const content = contentByKey.get(row.n);
    return content ? { ...row, ...content } : [];
  });
  const page = cutBySizes(
    { ...found, rows },
    ({ header, settings }) => (header?.length ?? 0) + settings.length,
    slice.bytesMax,
  );
  const queueIds = page.rows.flatMap(({ wait_state, queue_id }) =>
    wait_state === WAIT_STATE.queue && queue_id !== null ? queue_id : [],
  );
  const keys = page.rows.flatMap(({ wait_state, flow_key }) =>
    wait_state === WAIT_STATE.flow && flow_key !== null ? flow_key : [],
  );
  return {
    ...page,
    queues: await queries.query('select id, parallelism, paused from queues where project_id = ? and id in (??)', [
      projectId,
      [...new Set(queueIds)],
    ]),
    keys: await flowStatesOf(queries, { projectId, keys: [...new Set(keys)] }),
  };
}

/** Messages outside runs, newest first, without their bodies. A page is short when few of many messages match. */
export const listUnfinished = pagedRead(unfinishedOf, {
  windowsMax: 2,
  encode: (
    {
      projectId,
      filter: { messageId, unfinishedState, ...filter },
      page,
      nowMs,
    }: InProjectAt & { filter: UnfinishedFilter; page: Omit<PageRequest, 'order'> },
    window,
  ) => ({
    ...{ projectId, filter, nowMs },
    window: window === 0 ? Math.max(page.count + 1, FIRST_WINDOW) : WINDOW,
    ...(messageId && { messages: messageRefsOf(messageId) }),
    ...(unfinishedState && { states: unfinishedState }),
  }),
  decode: (rows, { nowMs }) => decodeUnfinished(rows, nowMs),
});

/** Decodes each row with the queue or the key that it waits for. */
function decodeUnfinished({ rows, queues, keys }: UnfinishedRows, nowMs: Millis): UnfinishedMessage[] {
  const queueById = new Map(queues.map((queue) => [queue.id, queue]));
  const keyByName = new Map(keys.map((key) => [key.key, key]));
  return rows.map((message) => {
    const { wait_state, queue_id, flow_key, standing: unfinishedState, bytes } = message;
    const queue = wait_state === WAIT_STATE.queue ? queueById.get(queue_id ?? -1) : undefined;
    const key = wait_state === WAIT_STATE.flow ? keyByName.get(flow_key ?? '') : undefined;
    const live = decodeLive({ message, ...(queue && { queue }), ...(key && { key }) }, nowMs);
    return { ...live, unfinishedState, bodyBytes: bytes };
  });
}

async function statesOf(queries: Queries, args: ListUnfinishedArgs): Promise<PageRows<StateRow>> {
  const { slice, window, nowMs } = args;
  const { rows: from, isWhole } = windowOf(args);
  const { joins, filter } = filterOf(args);
  const rows = await queries.query<StateRow>(
    // The plus keeps the planner from walking the whole table in order instead of the index of messages in flight.
    `select ${SELECTED}, ${STANDING_SQL} as standing from (select ${READ} from messages where ${from.texts.join(' and ')}) w
     ${joins} where ${filter.texts.join(' and ')} order by ${isWhole ? '+' : ''}w.key desc limit ?`,
    [nowMs, ...from.params, ...filter.params, slice.count + 1],
  );
  if (isWhole || rows.length > slice.count) return cutPage(rows, slice.count, undefined);
  const [end] = await queries.query<Position>(
    'select 0 as "timeMs", key as n from messages where key < ? order by key desc limit 1 offset ?',
    [beforeKey(slice), window - 1],
  );
  return cutPage(rows, slice.count, end);
}

/** The rows to examine: all matching rows (`isWhole`) if they are few, otherwise the next window of the table. */
function windowOf({ projectId, messages, states, slice, window }: ListUnfinishedArgs): {
  rows: Conditions;
  isWhole: boolean;
} {
  const before = beforeKey(slice);
  if (messages) return { rows: { texts: ['key in (??)', '+key < ?'], params: [messages.keys, before] }, isWhole: true };
  if (states?.every((state) => state === 'active')) {
    const texts = ['project_id = ?', 'claim_token is not null', '+key < ?'];
    return { rows: { texts, params: [projectId, before] }, isWhole: true };
  }
  return { rows: { texts: ['key < ? order by key desc limit ?'], params: [before, window] }, isWhole: false };
}

function filterOf({ projectId, filter, messages, states, nowMs }: ListUnfinishedArgs): {
  joins: string;
  filter: Conditions;
} {
  const conditions = contentConditions(filter);
  if (filter.fromMs !== undefined) addCondition(conditions, 'c.created_at_ms >= ?', filter.fromMs);
  if (filter.toMs !== undefined) addCondition(conditions, 'c.created_at_ms <= ?', filter.toMs);
  if (messages) addCondition(conditions, 'c.id in (??)', messages.ids);
  const joins = conditions.texts.length > 0 ? 'lookup contents c on (c.key = w.key)' : '';
  // Messages of runs are listed with the runs.
  addCondition(conditions, 'w.run_key is null and w.project_id = ?', projectId);
  if (states) {
    const values: SqlParam[] = [nowMs, states];
    conditions.texts.push(`${STANDING_SQL} in (??)`);
    conditions.params.push(...values);
  }
  return { joins, filter: conditions };
}

function beforeKey({ after }: Slice): number {
  return after?.n ?? Number.MAX_SAFE_INTEGER;
}
