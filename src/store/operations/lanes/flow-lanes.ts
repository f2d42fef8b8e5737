/**
 * The flow-control keys that a transaction changes: whether they may start another attempt, and when their wait lists are
 * served next.
 *
 * The claimed messages of a key hold the key's permits, and are counted when the key is loaded. After the changes of the
 * transaction, `save` counts the messages again and sets the time at which the wait list is served; counts are never
 * adjusted.
 */
import { countStart, nextStartAtMs, type RateWindow, startsLeft } from '../../../engine/lanes/lanes.ts';
import type { ProjectId } from '../../../engine/model.ts';
import type { FlowControl } from '../../../protocol/options/settings.ts';
import type { Queries, SqlValue, Transaction } from '../../driver.ts';
import type { DueTimes } from '../due-times.ts';
import { byProject } from '../locking/by-project.ts';
import { excluding } from '../locking/placement.ts';
import { fieldsOf, namesOf, type RowOf } from '../table.ts';
import { notEnding, PAST_LANES, WAIT_STATE } from './wait-states.ts';

export interface FlowRef {
  projectId: ProjectId;
  key: string;
}

/** The flow-control keys of `rows`. Rows without a key are skipped. */
export function flowRefsOf(rows: readonly { project_id: number; flow_key: string | null }[]): FlowRef[] {
  return rows.flatMap(({ project_id, flow_key }) =>
    flow_key === null ? [] : [{ projectId: project_id, key: flow_key }],
  );
}

const FLOW_KEY = [
  ['project_id', 'number'],
  ['key', 'text'],
  ['parallelism', 'number?'],
  ['rate', 'number?'],
  ['period_s', 'number'],
  ['parallelism_pinned', 'number'],
  ['rate_pinned', 'number'],
  ['paused', 'number'],
  ['window_started_at_ms', 'number?'],
  ['window_count', 'number'],
  ['used_at_ms', 'number'],
  ['wake_at_ms', 'number?'],
] as const;

export type FlowKeyRow = RowOf<typeof FLOW_KEY>;

interface FlowStateRow extends FlowKeyRow {
  in_flight: number;
  released: number;
  first_ready_at_ms: number | null;
}

/**
 * The released messages of a key are counted up to this limit, so that the cost of a key does not grow with the messages
 * that wait for an unavailable endpoint. A key that may start more attempts than this limit releases more messages, into
 * the backlog of their endpoint.
 */
const RELEASED_COUNTED_MAX = 1_000;

/** The time of the last use is rounded to this step, because it only serves to drop keys that were unused for a day. */
const USED_STEP_MS = 3_600_000;

const COLUMNS = namesOf(FLOW_KEY);

/** The select list of a `FlowKeyRow` from `flow_keys f`, with its claimed messages. */
export const STATE_FIELDS = `${fieldsOf('f', COLUMNS)},
  (select count(*) from messages m
   where m.project_id = f.project_id and m.flow_key = f.key and m.claim_token is not null) as in_flight`;

/**
 * The fields of a key from `flow_keys f`, with the number of its claimed messages, the number of released messages that
 * wait for their endpoint or project, and the due time of its first waiting message.
 */
const LANE_FIELDS = `${STATE_FIELDS},
  (select count(*) from (select 1 from messages m
     where m.project_id = f.project_id and m.flow_key = f.key and m.claim_token is null and m.wait_state in (${PAST_LANES})
     limit ${RELEASED_COUNTED_MAX}) as counted) as released,
  (select m.due_at_ms from messages m
   where m.project_id = f.project_id and m.flow_key = f.key and m.claim_token is null and m.wait_state = ${WAIT_STATE.flow}
     and ${notEnding('m')}
   order by m.due_at_ms, m.key limit 1) as first_ready_at_ms`;

const NEW_KEY: Omit<FlowKeyRow, 'project_id' | 'key' | 'used_at_ms'> = {
  parallelism: null,
  rate: null,
  period_s: 1,
  parallelism_pinned: 0,
  rate_pinned: 0,
  paused: 0,
  window_started_at_ms: null,
  window_count: 0,
  wake_at_ms: null,
};

/** A flow-control key within one transaction. */
export class FlowLane {
  readonly row: FlowKeyRow;
  #inFlight: number;
  /**
   * The number of released messages, which start before the other messages. The key subtracts this number from its
   * capacity, so that it does not release more messages to a busy endpoint than its parallelism.
   */
  #released: number;
  /** The due time of the first waiting message. */
  #firstReadyAtMs: number;
  #isChanged = false;

  constructor({ in_flight, released, first_ready_at_ms, ...row }: FlowStateRow) {
    this.row = row;
    this.#inFlight = in_flight;
    this.#released = released;
    this.#firstReadyAtMs = first_ready_at_ms ?? Infinity;
  }

  get isChanged(): boolean {
    return this.#isChanged;
  }

  /** Whether due messages wait; a new message queues behind them. */
  hasWaiting(nowMs: number): boolean {
    return this.#firstReadyAtMs <= nowMs;
  }

  /** Notes that a due message joins the wait list. */
  noteWaiting(): void {
    this.#firstReadyAtMs = -Infinity;
  }

  get window(): RateWindow {
    const { rate, period_s, window_started_at_ms, window_count } = this.row;
    return { rate, periodS: period_s, startedAtMs: window_started_at_ms, count: window_count };
  }

  /** How many more attempts may start now. */
  startsLeft(nowMs: number): number {
    if (this.row.paused === 1) return 0;
    const { parallelism } = this.row;
    const slotsLeft = parallelism === null ? Infinity : Math.max(0, parallelism - this.#inFlight);
    return Math.min(slotsLeft, startsLeft(this.window, nowMs));
  }

  /** How many more messages may leave the wait list. */
  releasesLeft(nowMs: number): number {
    return Math.max(0, this.startsLeft(nowMs) - this.#released);
  }

  /** Notes that the key has released a message, which now waits for its endpoint or its project. */
  noteReleased(): void {
    this.#released += 1;
  }

  /** Notes that a released message starts, or returns to the wait list. */
  undoRelease(): void {
    this.#released -= 1;
  }

  /** Notes the start of an attempt, which takes a permit and counts toward the rate. */
  start(nowMs: number): void {
    this.#inFlight += 1;
    if (this.row.rate === null) return;
    const { startedAtMs, count } = countStart(this.window, nowMs);
    this.change({ window_started_at_ms: startedAtMs, window_count: count });
  }

  /** Sets each limit that is not pinned to the value in the latest message, or to unlimited if the message has none. */
  follow({ parallelism, rate, periodS }: FlowControl, nowMs: number): void {
    if (this.row.parallelism_pinned === 0) this.change({ parallelism: parallelism ?? null });
    if (this.row.rate_pinned === 0) this.change({ rate: rate ?? null, period_s: periodS });
    if (Math.abs(nowMs - this.row.used_at_ms) >= USED_STEP_MS) this.change({ used_at_ms: nowMs });
  }

  change(values: Partial<FlowKeyRow>): void {
    for (const [name, value] of Object.entries(values) as [keyof FlowKeyRow, never][]) {
      if (this.row[name] === value) continue;
      this.row[name] = value;
      this.#isChanged = true;
    }
  }
}

export class FlowLanes {
  readonly #tx: Transaction;
  readonly #nowMs: number;
  readonly #lanes = new Map<string, FlowLane>();
  readonly #served = new Set<FlowLane>();

  constructor(tx: Transaction, nowMs: number) {
    this.#tx = tx;
    this.#nowMs = nowMs;
  }

  /** Loads the keys that exist and are not loaded yet. */
  async load(refs: readonly FlowRef[]): Promise<void> {
    for (const [projectId, keys] of this.#missing(refs)) {
      for (const row of await flowStates(this.#tx, projectId, keys)) this.add(row);
    }
  }

  /** Like `load`, and creates the missing keys. */
  async loadOrCreate(refs: readonly FlowRef[]): Promise<void> {
    await this.load(refs);
    const created: FlowKeyRow[] = [];
    for (const [projectId, keys] of this.#missing(refs)) {
      for (const key of keys) created.push({ ...NEW_KEY, project_id: projectId, key, used_at_ms: this.#nowMs });
    }
    if (created.length === 0) return;
    await this.#tx.insertMany('flow_keys', COLUMNS, created.map(valuesOf));
    for (const row of created) this.add({ ...row, in_flight: 0, released: 0, first_ready_at_ms: null });
  }

  add(row: FlowStateRow): FlowLane {
    const lane = new FlowLane(row);
    this.#lanes.set(nameOf(row.project_id, row.key), lane);
    return lane;
  }

  find(projectId: ProjectId, key: string): FlowLane | undefined {
    return this.#lanes.get(nameOf(projectId, key));
  }

  /** Makes `save` move the key to the end of the rotation, because the wait list of the key was served. */
  markServed(lane: FlowLane): void {
    this.#served.add(lane);
  }

  /** Saves the keys, and notes when they are served next. All messages of the transaction must be written before. */
  async save(due: DueTimes): Promise<void> {
    const lanes = [...this.#lanes.values()];
    const refs = lanes.map(({ row }) => ({ projectId: row.project_id, key: row.key }));
    for (const [projectId, keys] of byProject(refs, ({ key }) => key)) {
      for (const fresh of await flowStates(this.#tx, projectId, keys)) {
        const lane = this.find(projectId, fresh.key);
        if (!lane) continue;
        lane.change({ wake_at_ms: this.#wakeAtMs(lane, fresh) });
        if (lane.isChanged) await update(this.#tx, lane.row);
        if (lane.row.wake_at_ms !== null) due.note(lane.row.wake_at_ms);
      }
    }
  }

  /** When the key is served next. A due key keeps its position in the rotation; a key just served moves to the end. */
  #wakeAtMs(lane: FlowLane, { in_flight, released, first_ready_at_ms }: FlowStateRow): number | null {
    const { parallelism, paused, wake_at_ms } = lane.row;
    const nextMs = nextStartAtMs(
      {
        window: lane.window,
        parallelism,
        isPaused: paused === 1,
        inFlight: in_flight,
        released,
        firstReadyAtMs: first_ready_at_ms,
      },
      this.#nowMs,
    );
    if (nextMs === null || nextMs > this.#nowMs) return nextMs;
    const keepsPosition = wake_at_ms !== null && wake_at_ms <= this.#nowMs && !this.#served.has(lane);
    return keepsPosition ? wake_at_ms : this.#nowMs;
  }

  #missing(refs: readonly FlowRef[]): Map<ProjectId, string[]> {
    const missing = refs.filter(({ projectId, key }) => !this.#lanes.has(nameOf(projectId, key)));
    return byProject(missing, ({ key }) => key);
  }
}

async function flowStates(queries: Queries, projectId: ProjectId, keys: readonly string[]): Promise<FlowStateRow[]> {
  return await queries.query<FlowStateRow>(
    `select ${LANE_FIELDS} from flow_keys f where f.project_id = ? and f.key in (??) order by f.key for update of f`,
    [projectId, keys],
  );
}

/** The keys whose wait lists are due to be served, in the order of the rotation. */
export function wokenLanes(
  queries: Queries,
  nowMs: number,
  limit: number,
  moving: Iterable<ProjectId>,
): Promise<FlowStateRow[]> {
  const { and, params } = excluding(moving, 'f.project_id');
  return queries.query<FlowStateRow>(
    `select ${LANE_FIELDS} from flow_keys f where f.wake_at_ms <= ?${and}
     order by f.wake_at_ms, f.project_id, f.key limit ? for update of f skip locked`,
    [nowMs, ...params, limit],
  );
}

/** The time at which the next wait list is to be served. */
export async function nextWakeAtMs(queries: Queries, moving: Iterable<ProjectId>): Promise<number | null> {
  const { and, params } = excluding(moving);
  const [row] = await queries.query<{ wake_at_ms: number }>(
    `select wake_at_ms from flow_keys where wake_at_ms is not null${and} order by wake_at_ms, project_id, key limit 1`,
    params,
  );
  return row?.wake_at_ms ?? null;
}

function valuesOf(row: FlowKeyRow): SqlValue[] {
  return COLUMNS.map((column) => row[column]);
}

function update(tx: Transaction, row: FlowKeyRow): Promise<void> {
  return tx.send(
    `update flow_keys set ${COLUMNS.slice(2)
      .map((name) => `${name} = ?`)
      .join(', ')} where project_id = ? and key = ?`,
    [...valuesOf(row).slice(2), row.project_id, row.key],
  );
}

function nameOf(projectId: ProjectId, key: string): string {
  return `${projectId} ${key}`;
}
