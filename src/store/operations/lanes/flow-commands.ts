/** Pausing, pinning, resetting, listing and dropping flow-control keys (contract M 16.6, 16.7, 22.30 to 22.36). */
import { type FlowKey, type FlowKeyState, type FlowPin, isWindowOpen } from '../../../engine/lanes/lanes.ts';
import type { Millis, ProjectId } from '../../../engine/model.ts';
import type { Queries } from '../../driver.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { longRead, write } from '../operation.ts';
import { type FlowKeyRow, FlowLanes, type FlowRef, STATE_FIELDS } from './flow-lanes.ts';
import { PAST_LANES, WAIT_STATE } from './wait-states.ts';

type At<Args> = Args & FlowRef & { nowMs: number };

/** Pausing an unused key creates the key. Resuming an unknown key changes nothing. */
export const setKeyPaused = write(async (context: WriteContext, args: At<{ isPaused: boolean }>): Promise<void> => {
  return change(context, args, { create: args.isPaused }, () => ({ paused: args.isPaused ? 1 : 0 }));
});

/** A pinned rate starts a new period. */
export const pinKey = write(async (context: WriteContext, args: At<{ pin: FlowPin }>): Promise<void> => {
  const { parallelism, rate, periodS } = args.pin;
  return change(context, args, { create: true }, (row) => ({
    ...(parallelism === undefined ? {} : { parallelism, parallelism_pinned: 1 }),
    ...(rate === undefined ? {} : { rate, period_s: periodS ?? row.period_s, rate_pinned: 1, ...NO_WINDOW }),
  }));
});

/** The values of the pin continue to apply until the next message sets new values. */
export const unpinKey = write(
  async (context: WriteContext, args: At<{ parallelism: boolean; rate: boolean }>): Promise<void> => {
    return change(context, args, { create: false }, () => ({
      ...(args.parallelism ? { parallelism_pinned: 0 } : {}),
      ...(args.rate ? { rate_pinned: 0 } : {}),
    }));
  },
);

/** Starts a new period now. */
export const resetKeyRate = write(async (context: WriteContext, args: At<object>): Promise<void> => {
  return change(context, args, { create: false }, () => ({ window_started_at_ms: args.nowMs, window_count: 0 }));
});

const NO_WINDOW = { window_started_at_ms: null, window_count: 0 };

async function change(
  { tx, due }: WriteContext,
  { projectId, key, nowMs }: At<object>,
  { create }: { create: boolean },
  valuesOf: (row: FlowKeyRow) => Partial<FlowKeyRow>,
): Promise<void> {
  const flows = new FlowLanes(tx, nowMs);
  await (create ? flows.loadOrCreate([{ projectId, key }]) : flows.load([{ projectId, key }]));
  const lane = flows.find(projectId, key);
  if (!lane) return;
  lane.change({ ...valuesOf(lane.row), used_at_ms: nowMs });
  await flows.save(due);
}

/** A key without the size of its wait list, because counting the list may read many rows. */
export interface FlowStateView extends FlowKeyRow {
  in_flight: number;
}

export interface FlowKeyView extends FlowStateView {
  wait_list_size: number;
}

const VIEW_FIELDS = `${STATE_FIELDS},
  (select count(*) from messages m
   where m.project_id = f.project_id and m.flow_key = f.key and m.claim_token is null and m.wait_state = ${WAIT_STATE.flow}
     and m.due_at_ms <= ?) as wait_list_size`;

export const findKey = longRead(
  async (
    queries: Queries,
    { projectId, key, nowMs }: FlowRef & { nowMs: number },
  ): Promise<FlowKeyView | undefined> => {
    const [row] = await queries.query<FlowKeyView>(
      `select ${VIEW_FIELDS} from flow_keys f where f.project_id = ? and f.key = ?`,
      [nowMs, projectId, key],
    );
    return row;
  },
  (row, { nowMs }) => row && decodeFlowKey(row, nowMs),
);

/** The states of the `keys` that exist. */
export function flowStatesOf(
  queries: Queries,
  { projectId, keys }: { projectId: ProjectId; keys: readonly string[] },
): Promise<FlowStateView[]> {
  return queries.query(`select ${STATE_FIELDS} from flow_keys f where f.project_id = ? and f.key in (??)`, [
    projectId,
    keys,
  ]);
}

export interface ListKeysArgs {
  projectId: ProjectId;
  /** A part of the name of each listed key, case-sensitive. If empty, all keys match. */
  search: string;
  /** The list begins after this key. */
  after: string;
  count: number;
  nowMs: number;
}

/** Lists up to `count` keys after `after` that contain `search`, ordered by key. */
export const listKeys = longRead(
  (queries: Queries, args: ListKeysArgs): Promise<FlowKeyView[]> => {
    const { projectId, search, after, count, nowMs } = args;
    // This is case-sensitive in both databases and has no wildcards, unlike `like`.
    return queries.query<FlowKeyView>(
      `select ${VIEW_FIELDS} from flow_keys f
     where f.project_id = ? and f.key > ? and (? = '' or replace(f.key, ?, '') <> f.key) order by f.key limit ?`,
      [nowMs, projectId, after, search, search, count],
    );
  },
  (rows, { nowMs }) => rows.map((row) => decodeFlowKey(row, nowMs)),
);

export function decodeFlowKey(row: FlowKeyView, nowMs: Millis): FlowKey {
  return { ...decodeFlowState(row, nowMs), waitListSize: row.wait_list_size };
}

export function decodeFlowState(row: FlowStateView, nowMs: Millis): FlowKeyState {
  const { rate, period_s: periodS, window_started_at_ms: startedAtMs, window_count: count } = row;
  const key: FlowKeyState = {
    key: row.key,
    inFlight: row.in_flight,
    periodS,
    rateCount: isWindowOpen({ rate, periodS, startedAtMs, count }, nowMs) ? count : 0,
    isPaused: row.paused === 1,
    isParallelismPinned: row.parallelism_pinned === 1,
    isRatePinned: row.rate_pinned === 1,
  };
  if (row.parallelism !== null) key.parallelism = row.parallelism;
  if (rate !== null) key.rate = rate;
  if (startedAtMs !== null) key.periodStartedAtMs = startedAtMs;
  return key;
}

/**
 * Examines up to `rowsMax` keys that were last used before `usedBeforeMs`, and drops those that have no messages and no
 * settings. The other examined keys are marked as used now, so that a hundred thousand pinned keys are examined once a
 * day, not in each chunk. Returns the number of examined keys.
 */
export async function dropUnusedKeys(
  { tx, locked }: WriteContext,
  { usedBeforeMs, nowMs, rowsMax }: { usedBeforeMs: number; nowMs: number; rowsMax: number },
): Promise<number> {
  const rows = await tx.query<FlowRow>(
    // The query has no `exists`, because a planner may evaluate an `exists` for all keys at once, by reading all
    // messages.
    `select f.project_id, f.key,
       case when f.paused = 1 or f.parallelism_pinned = 1 or f.rate_pinned = 1
         or (select 1 from messages m
           where m.project_id = f.project_id and m.flow_key = f.key and m.claim_token is not null limit 1) is not null
         or (select 1 from messages m
           where m.project_id = f.project_id and m.flow_key = f.key and m.claim_token is null and m.wait_state = ${WAIT_STATE.flow} limit 1) is not null
         or (select 1 from messages m
           where m.project_id = f.project_id and m.flow_key = f.key and m.claim_token is null and m.wait_state in (${PAST_LANES}) limit 1) is not null
         or (select 1 from messages m
           where m.project_id = f.project_id and m.flow_key = f.key and m.claim_token is null and m.wait_state = ${WAIT_STATE.queue} limit 1) is not null
       then 1 else 0 end as in_use
     from flow_keys f where f.used_at_ms < ? order by f.used_at_ms limit ?`,
    [usedBeforeMs, rowsMax],
  );
  for (const { project_id, key, in_use } of rows) {
    if (!locked.has(project_id)) continue; // found after the projects were locked
    if (in_use === 0) await tx.send('delete from flow_keys where project_id = ? and key = ?', [project_id, key]);
    else
      await tx.send('update flow_keys set used_at_ms = ? where project_id = ? and key = ?', [nowMs, project_id, key]);
  }
  return rows.length;
}

/** The projects whose keys `dropUnusedKeys` examines. */
export async function projectsOfUnusedKeys(
  queries: Queries,
  { usedBeforeMs, rowsMax }: { usedBeforeMs: number; rowsMax: number },
): Promise<ProjectId[]> {
  const rows = await queries.query<{ project_id: ProjectId }>(
    `select distinct project_id from (select project_id from flow_keys where used_at_ms < ?
       order by used_at_ms limit ?) as first`,
    [usedBeforeMs, rowsMax],
  );
  return rows.map(({ project_id }) => project_id);
}

interface FlowRow {
  project_id: number;
  key: string;
  in_use: number;
}
