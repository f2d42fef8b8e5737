/** Lists the waiters of a project across all event ids. */
import type { ProjectId } from '../../../engine/model.ts';
import type { ListedWaiter, WaiterPosition } from '../../../engine/runs/stores.ts';
import type { Queries, SqlParam } from '../../driver.ts';
import { longRead } from '../operation.ts';

/** Sorts after every character that an event id may have. */
const LAST = '~';

interface ListAllWaitersArgs {
  projectId: ProjectId;
  prefix: string;
  after?: WaiterPosition;
  count: number;
}

/**
 * The first `count` waiters after `after` whose event ids begin with `prefix`, which may be empty; by event id, then in
 * order of registration.
 */
export const listAllWaiters = longRead(async (queries: Queries, args: ListAllWaitersArgs): Promise<ListedWaiter[]> => {
  const { projectId, prefix, after, count } = args;
  const from = after !== undefined && after.eventId >= prefix ? after : { eventId: prefix, key: -1 };
  // These are two queries, because in a single query SQLite would read the earlier waiters of the same event again.
  const same = await waitersWhere(queries, 'event_id = ? and key > ?', [projectId, from.eventId, from.key, count]);
  if (same.length === count) return same;
  const bounds = [projectId, from.eventId, prefix + LAST, count - same.length];
  return [...same, ...(await waitersWhere(queries, 'event_id > ? and event_id < ?', bounds))];
});

function waitersWhere(queries: Queries, condition: string, params: readonly SqlParam[]): Promise<ListedWaiter[]> {
  return queries.query<ListedWaiter>(
    `select w.event_id as "eventId", w.key, w.deadline_ms as "deadlineMs", c.id as "messageId",
       c.created_at_ms as "sinceMs", r.id as "runId", r.url as "runUrl", r.created_at_ms as "runCreatedAtMs"
     from (select event_id, key, run_key, deadline_ms from waiters where project_id = ? and ${condition}
       order by event_id, key limit ?) w
     lookup runs r on (r.key = w.run_key) lookup contents c on (c.key = w.key) order by w.event_id, w.key`,
    params,
  );
}
