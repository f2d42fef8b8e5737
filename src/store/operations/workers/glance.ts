/** What is there to do in the store? One statement, since each heartbeat asks it. */
import type { Millis, ProjectId } from '../../../engine/model.ts';
import type { Queries } from '../../driver.ts';
import { leavingOut } from '../fence.ts';
import { LINE, NOT_ENDING } from '../lanes/lines.ts';

export interface Glance {
  /** The earliest times at which the due index, a flow-control key, a schedule or a waiter has work. */
  dueAtMs: Millis | null;
  wakeAtMs: Millis | null;
  scheduleAtMs: Millis | null;
  deadlineMs: Millis | null;
  /** Whether any message waits in the line of a busy origin. */
  hasLines: 0 | 1;
  /** Whether any message is claimed. */
  hasClaims: 0 | 1;
  accountsVersion: number | null;
}

/** Each part takes one step in an index. It is asked where the rows are: every store has the first migration. */
export async function glance(queries: Queries, moving: Iterable<ProjectId>): Promise<Glance> {
  const { and, where, params } = leavingOut(moving);
  const [row] = await queries.query<Glance>(
    `select
       (select due_at_ms from messages where claim_token is null and line = ${LINE.due} and ${NOT_ENDING}${and}
        order by due_at_ms, key limit 1) as "dueAtMs",
       (select wake_at_ms from flow_keys where wake_at_ms is not null${and}
        order by wake_at_ms, project_id, key limit 1) as "wakeAtMs",
       (select next_at_ms from schedules where paused = 0${and} order by next_at_ms, key limit 1) as "scheduleAtMs",
       (select deadline_ms from waiters${where} order by deadline_ms, key limit 1) as "deadlineMs",
       exists lookup (select 1 from messages where claim_token is null and line = ${LINE.origin}) as "hasLines",
       exists lookup (select 1 from messages where claim_token is not null) as "hasClaims",
       (select next from numbers where name = 'accounts') as "accountsVersion"
     from migrations where number = 1`,
    [...params, ...params, ...params, ...params],
  );
  if (!row) throw new Error('the store has no first migration');
  return row;
}
