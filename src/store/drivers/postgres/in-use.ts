/** Detects by the heartbeats in table `workers` whether a Waypost server uses the database. */
import type { Queries } from '../../driver.ts';

/**
 * Counts the workers whose last heartbeat, by the database's clock, is not older than their timeout. Returns 0 for a
 * database without the table `workers`.
 */
export async function countLiveWorkers(queries: Queries): Promise<number> {
  const [table] = await queries.query<{ isThere: number }>(`select to_regclass('workers') is not null as "isThere"`);
  if (table?.isThere !== 1) return 0;
  const [row] = await queries.query<{ count: number }>(
    `select count(*) as count from workers
     where beat_at_ms + timeout_ms >= extract(epoch from clock_timestamp()) * 1000`,
  );
  return row?.count ?? 0;
}
