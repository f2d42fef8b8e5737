/** Polls a store for due work: with each heartbeat, and from workers that do not serve the store now. */
import type { Millis, ProjectId } from '../../../engine/model.ts';
import type { CellPoll } from '../../../engine/stores.ts';
import type { Queries } from '../../driver.ts';
import { NOT_ENDING, WAIT_STATE } from '../lanes/wait-states.ts';
import { excluding, projectsMoving } from '../locking/placement.ts';

export interface DueWork {
  /** The earliest times at which the due index, a flow-control key, a schedule or a waiter has work. */
  dueAtMs: Millis | null;
  wakeAtMs: Millis | null;
  scheduleAtMs: Millis | null;
  deadlineMs: Millis | null;
  /** Whether any message is in an endpoint backlog. */
  hasBacklogs: 0 | 1;
  /** Whether any message is claimed. */
  hasClaims: 0 | 1;
  /** Whether any ended run has messages left. */
  hasEnding: 0 | 1;
  accountsVersion: number;
}

/** Each subquery costs one step in an index. `migrations` is read because every store has the first migration. */
export async function pollDueWork(queries: Queries, moving: Iterable<ProjectId>): Promise<DueWork> {
  const { and, where, params } = excluding(moving);
  const [row] = await queries.query<DueWork>(
    `select
       (select due_at_ms from messages where claim_token is null and wait_state = ${WAIT_STATE.due} and ${NOT_ENDING}${and}
        order by due_at_ms, key limit 1) as "dueAtMs",
       (select wake_at_ms from flow_keys where wake_at_ms is not null${and}
        order by wake_at_ms, project_id, key limit 1) as "wakeAtMs",
       (select next_at_ms from schedules where paused = 0${and} order by next_at_ms, key limit 1) as "scheduleAtMs",
       (select deadline_ms from waiters${where} order by deadline_ms, key limit 1) as "deadlineMs",
       exists lookup (select 1 from messages where claim_token is null and wait_state = ${WAIT_STATE.origin}) as "hasBacklogs",
       exists lookup (select 1 from messages where claim_token is not null) as "hasClaims",
       exists lookup (select 1 from ending_runs) as "hasEnding",
       (select next from numbers where name = 'accounts') as "accountsVersion"
     from migrations where number = 1`,
    [...params, ...params, ...params, ...params],
  );
  if (!row) throw new Error('the store has no first migration');
  return row;
}

/** A heartbeat this far in the future means that the database's clock was set back. */
const SET_BACK_MS = 2_000;

interface NeglectedWork {
  /** Whether a worker has missed its heartbeats. */
  bySilent: 0 | 1;
  /** Whether a claim belongs to a worker that is gone. */
  byLost: 0 | 1;
  hasFacts: 0 | 1;
  eventAtMs: Millis | null;
}

/** Whether and when a worker of this cell would have work. `nowMs` is the time of the database. */
export async function pollCell(queries: Queries, nowMs: Millis): Promise<CellPoll> {
  const [seen, moving, [neglected]] = await Promise.all([
    pollDueWork(queries, []),
    projectsMoving(queries),
    queries.query<NeglectedWork>(
      `select
         exists lookup (select 1 from workers
           where timeout_ms >= 0 and (beat_at_ms + timeout_ms < ? or beat_at_ms > ?)) as "bySilent",
         exists lookup (select 1 from messages m where claim_token is not null
           and not exists lookup (select 1 from workers w where w.id = m.worker and w.timeout_ms >= 0)) as "byLost",
         exists lookup (select 1 from operator_facts) as "hasFacts",
         (select due_at_ms from operator_events where due_at_ms is not null order by due_at_ms limit 1) as "eventAtMs"
       from migrations where number = 1`,
      [nowMs, nowMs + SET_BACK_MS],
    ),
  ]);
  const times = [seen.dueAtMs, seen.wakeAtMs, seen.scheduleAtMs, seen.deadlineMs].filter((ms) => ms !== null);
  const isNeglected = neglected?.bySilent === 1 || neglected?.byLost === 1 || seen.hasEnding === 1;
  return {
    dueInMs: Math.min(...times) - nowMs,
    eventInMs: neglected?.hasFacts === 1 ? 0 : (neglected?.eventAtMs ?? Infinity) - nowMs,
    isNeglected: isNeglected || seen.hasBacklogs === 1 || moving.length > 0,
  };
}
