/**
 * Reports the wait states of a project's unfinished messages, and the causes of its latest failures. All counts are
 * limited, so the cost does not grow with the backlog.
 */

import type { Backlog, Counted, FailureCause, Failures } from '../../../engine/lists/unfinished.ts';
import type { Millis, ProjectId } from '../../../engine/model.ts';
import type { Queries, SqlParam } from '../../driver.ts';
import { decodeFlowState, type FlowStateView, flowStatesOf } from '../lanes/flow-commands.ts';
import { countInFlight } from '../lanes/project-gate.ts';
import { WAIT_STATE } from '../lanes/wait-states.ts';
import { STANDING_SQL } from '../messages/unfinished.ts';
import { longRead } from '../operation.ts';

/** How many messages, the newest of all projects, are examined to count the messages of one project. */
const COUNTED_MAX = 10_000;

/** How many wait lists of each kind are examined, and how many messages are counted in each wait list. */
const WAIT_LISTS_MAX = 20;
const COUNTED_PER_LIST_MAX = 500;

/** How many due messages, the earliest of all projects, are searched for the first message of one project. */
const DUE_MAX = 1_000;

/** DLQ entries that are counted by cause. */
const FAILURES_MAX = 1_000;

/** Longer than the name of any kind of failure. */
const ERROR_BYTES_MAX = 120;

interface WaitListRow {
  waiting: number;
  due_at_ms: number;
}

interface Counts {
  looked_at: number;
  waiting: number;
  held: number;
}

interface BacklogRows {
  active: number;
  counts: Counts;
  first_due_at_ms: number | null;
  project: WaitListRow | null;
  origins: OriginRow[];
  queues: QueueRow[];
  keys: KeyRow[];
  states: FlowStateView[];
}

interface Args {
  projectId: ProjectId;
  nowMs: Millis;
}

export const readBacklog = longRead(async (queries: Queries, { projectId, nowMs }: Args): Promise<BacklogRows> => {
  // All queries are sent at once, so that a remote database costs one round trip.
  const [active, counts, first_due_at_ms, project, origins, queues, keys] = await Promise.all([
    countInFlight(queries, { projectId }),
    countsOf(queries, { projectId, nowMs }),
    firstDueAt(queries, { projectId, nowMs }),
    readProjectWaitList(queries, projectId),
    readWaitLists(queries, projectId, ORIGINS),
    readWaitLists(queries, projectId, QUEUES),
    readWaitLists(queries, projectId, { ...KEYS, params: [nowMs] }),
  ]);
  const states = await flowStatesOf(queries, { projectId, keys: keys.map(({ flow_key }) => flow_key) });
  return { active, counts, first_due_at_ms, project, origins, queues, keys, states };
}, decodeBacklog);

async function countsOf(queries: Queries, { projectId, nowMs }: Args): Promise<Counts> {
  const [row] = await queries.query<Counts>(
    `select count(*) as looked_at, count(case when s.standing = 'waiting' then 1 end) as waiting,
       count(case when s.standing = 'held' then 1 end) as held
     from (select case when w.project_id = ? then ${STANDING_SQL} end as standing
       from (select project_id, claim_token, wait_state, due_at_ms from messages where key < ? order by key desc limit ?) w) s`,
    [projectId, nowMs, Number.MAX_SAFE_INTEGER, COUNTED_MAX + 1],
  );
  return row ?? { looked_at: 0, waiting: 0, held: 0 };
}

/** The earliest due time of messages that are in no wait list yet. */
async function firstDueAt(queries: Queries, { projectId, nowMs }: Args): Promise<Millis | null> {
  const [row] = await queries.query<{ due_at_ms: number }>(
    `select w.due_at_ms from (select project_id, due_at_ms from messages
       where claim_token is null and wait_state = ${WAIT_STATE.due} and due_at_ms <= ? order by due_at_ms, key limit ?) w
     where w.project_id = ? order by w.due_at_ms limit 1`,
    [nowMs, DUE_MAX, projectId],
  );
  return row?.due_at_ms ?? null;
}

async function readProjectWaitList(queries: Queries, projectId: ProjectId): Promise<WaitListRow | null> {
  const [row] = await queries.query<{ waiting: number; due_at_ms: number | null }>(
    `select count(*) as waiting, min(w.due_at_ms) as due_at_ms from (select due_at_ms from messages
       where project_id = ? and claim_token is null and wait_state = ${WAIT_STATE.project} order by due_at_ms, key limit ?) w`,
    [projectId, COUNTED_PER_LIST_MAX + 1],
  );
  return row && row.due_at_ms !== null ? { waiting: row.waiting, due_at_ms: row.due_at_ms } : null;
}

interface WaitListQuery<Row> {
  /** The parameters that precede the project and the name of the previous wait list. */
  params?: readonly SqlParam[];
  text: string;
  /** A name that sorts before all others. */
  first: string | number;
  nameOf: (row: Row) => string | number;
}

/** Counts the messages in the same wait list as `m`, in SQL. */
function counted(condition: string): string {
  return `(select count(*) from (select 1 from messages l where l.project_id = m.project_id and l.claim_token is null
    and ${condition} limit ${COUNTED_PER_LIST_MAX + 1}) as counted) as waiting`;
}

type OriginRow = WaitListRow & { origin: string };
type KeyRow = WaitListRow & { flow_key: string };
type QueueRow = WaitListRow & { queue_id: number; name: string; paused: number; parallelism: number };

const ORIGINS: WaitListQuery<OriginRow> = {
  text: `select m.origin, m.due_at_ms, ${counted(`l.wait_state = ${WAIT_STATE.origin} and l.origin = m.origin`)} from messages m
    where m.project_id = ? and m.claim_token is null and m.wait_state = ${WAIT_STATE.origin} and m.origin > ?
    order by m.origin, m.due_at_ms limit 1`,
  first: '',
  nameOf: ({ origin }) => origin,
};

const KEYS: WaitListQuery<KeyRow> = {
  text: `select m.flow_key, m.due_at_ms,
      ${counted(`l.wait_state = ${WAIT_STATE.flow} and l.flow_key = m.flow_key and l.due_at_ms <= ?`)}
    from messages m where m.project_id = ? and m.claim_token is null and m.wait_state = ${WAIT_STATE.flow} and m.flow_key > ?
    order by m.flow_key, m.due_at_ms limit 1`,
  first: '',
  nameOf: ({ flow_key }) => flow_key,
};

const QUEUES: WaitListQuery<QueueRow> = {
  text: `select m.queue_id, m.due_at_ms, q.name, q.paused, q.parallelism,
      ${counted(`l.wait_state = ${WAIT_STATE.queue} and l.queue_id = m.queue_id`)}
    from messages m lookup queues q on (q.project_id = m.project_id and q.id = m.queue_id)
    where m.project_id = ? and m.claim_token is null and m.wait_state = ${WAIT_STATE.queue} and m.queue_id > ?
    order by m.queue_id, m.queue_position limit 1`,
  first: -1,
  nameOf: ({ queue_id }) => queue_id,
};

/** The first wait lists by name, and one more, which shows whether the limit is exceeded. Each costs one index step. */
async function readWaitLists<Row extends object>(
  queries: Queries,
  projectId: ProjectId,
  { params = [], text, first, nameOf }: WaitListQuery<Row>,
): Promise<Row[]> {
  const lists: Row[] = [];
  let after: SqlParam = first;
  while (lists.length <= WAIT_LISTS_MAX) {
    const [list]: Row[] = await queries.query<Row>(text, [...params, projectId, after]);
    if (!list) break;
    lists.push(list);
    after = nameOf(list);
  }
  return lists;
}

function decodeBacklog(rows: BacklogRows, { nowMs }: Args): Backlog {
  const { active, counts, project, origins, queues, keys } = rows;
  const isAtLeast = counts.looked_at > COUNTED_MAX;
  const stateByKey = new Map(rows.states.map((state) => [state.key, state]));
  const waitLists = [...(project ? [project] : []), ...origins, ...queues, ...keys];
  const dueMs = [rows.first_due_at_ms, ...waitLists.map(({ due_at_ms }) => due_at_ms)].filter(
    (atMs): atMs is Millis => atMs !== null && atMs <= nowMs,
  );
  const inWaitLists = waitLists.reduce((sum, { waiting }) => sum + waiting, 0);
  return {
    active,
    waiting: { count: counts.waiting, isAtLeast },
    held: { count: Math.max(counts.held, isAtLeast ? inWaitLists : 0), isAtLeast },
    ...(dueMs.length > 0 && { oldestDueAtMs: Math.min(...dueMs) }),
    ...(project && { project: decodeWaitList(project) }),
    origins: origins.slice(0, WAIT_LISTS_MAX).map((row) => ({ origin: row.origin, ...decodeWaitList(row) })),
    queues: queues.slice(0, WAIT_LISTS_MAX).map((row) => {
      return { queueName: row.name, isPaused: row.paused === 1, parallelism: row.parallelism, ...decodeWaitList(row) };
    }),
    keys: keys.slice(0, WAIT_LISTS_MAX).flatMap((row) => {
      const state = stateByKey.get(row.flow_key);
      return state ? { key: decodeFlowState(state, nowMs), ...decodeWaitList(row) } : [];
    }),
    isPartial: [origins, queues, keys].some(({ length }) => length > WAIT_LISTS_MAX),
  };
}

function decodeWaitList({ waiting, due_at_ms }: WaitListRow): { waiting: Counted; firstDueAtMs: Millis } {
  return { waiting: countedUpTo(waiting, COUNTED_PER_LIST_MAX), firstDueAtMs: due_at_ms };
}

function countedUpTo(count: number, max: number): Counted {
  return { count: Math.min(count, max), isAtLeast: count > max };
}

interface FailureRow {
  failed_at_ms: number;
  response_status: number;
  error: Uint8Array | null;
  /** 1 for a workflow run, else 0. */
  is_run: number;
}

interface FailureRows {
  dead: number;
  dead_runs: number;
  rows: FailureRow[];
}

export const readFailures = longRead(
  async (queries: Queries, { projectId }: { projectId: ProjectId }): Promise<FailureRows> => {
    const [counts] = await queries.query<{ dead: number; dead_runs: number }>(
      `select count(*) as dead, count(w.run_key) as dead_runs from (select run_key from dead where project_id = ?
         order by failed_at_ms desc, key desc limit ?) w`,
      [projectId, COUNTED_MAX + 1],
    );
    // Without a response, the body is the text of the error.
    const rows = await queries.query<FailureRow>(
      `select failed_at_ms, response_status, case when run_key is null then 0 else 1 end as is_run,
         case when response_status = 0 then substr(response_body, 1, ${ERROR_BYTES_MAX}) end as error
       from dead where project_id = ? order by failed_at_ms desc, key desc limit ?`,
      [projectId, FAILURES_MAX],
    );
    return { dead: counts?.dead ?? 0, dead_runs: counts?.dead_runs ?? 0, rows };
  },
  ({ dead, dead_runs: runs, rows }): Failures => {
    const isAtLeast = dead > COUNTED_MAX;
    return {
      messages: { count: Math.min(dead - runs, COUNTED_MAX), isAtLeast },
      runs: { count: runs, isAtLeast },
      lookedAt: rows.length,
      causes: causesOf(rows),
    };
  },
);

function causesOf(rows: readonly FailureRow[]): FailureCause[] {
  const causes = new Map<string, FailureCause>();
  for (const { failed_at_ms, response_status, error, is_run } of rows) {
    const kind = error === null ? undefined : kindOf(error);
    const name = `${response_status} ${kind}`;
    const cause = causes.get(name);
    if (cause) {
      cause.count += 1;
      cause.runs += is_run;
    } else {
      const first = { responseStatus: response_status, count: 1, runs: is_run, lastAtMs: failed_at_ms };
      causes.set(name, kind === undefined ? first : { ...first, error: kind });
    }
  }
  return [...causes.values()].toSorted((a, b) => b.count - a.count);
}

/** The words before the details, such as `timeout` in `timeout: no complete response within 30000 ms`. */
function kindOf(error: Uint8Array): string {
  return /^[^:(]*/.exec(new TextDecoder().decode(error))?.[0].trim() || 'no response';
}
