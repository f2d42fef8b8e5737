/** Storage settings of the store's tables in PostgreSQL: free space, vacuum thresholds, partitions. */

/**
 * For tables whose rows change all the time. Each page keeps some free room, so that a new version of a row stays on
 * its page. If no indexed column has changed, it then needs no new index entry. A vacuum runs long before dead rows
 * slow reads down. By default it would wait for a fifth of the table, and a queue that reads past its dead rows becomes
 * slower than it fills. Index entries are cleaned each time, however few are dead, because the indexes are read from
 * the end where rows are removed. An empty file is cut, as by default. The planner then estimates the number of rows
 * from the size of the file after a burst; otherwise it would still expect none.
 */
export const HOT = withSettings({
  fillfactor: 70,
  autovacuum_vacuum_scale_factor: 0.01,
  autovacuum_vacuum_threshold: 500,
  autovacuum_vacuum_cost_delay: 0,
  autovacuum_analyze_scale_factor: 0.02,
  vacuum_index_cleanup: 'on',
});

/**
 * For tables whose rows never change. With logs of two weeks, a daily retention round removes about a fourteenth. That
 * room must be free again before the next round, also where the bodies are (TOAST). Vacuums after inserts alone run no
 * more often than by default: they mark pages for reads of an index only, and this store has no such reads.
 */
export const PASSING = withSettings({
  autovacuum_vacuum_scale_factor: 0.03,
  autovacuum_vacuum_threshold: 1_000,
  'toast.autovacuum_vacuum_scale_factor': 0.03,
});

/**
 * The logs, in one partition for each day (log-days.ts). Entries without such a partition, as after a clock jumps, go
 * to the default one. `log_expiry` has one row. The worker that has locked it maintains the partitions. The row says how
 * far the day that is being dropped has been walked through.
 */
export const LOG_DAYS = {
  partitioned: ' partition by range (at_ms)',
  tables: [
    `create table logs_default partition of logs default${PASSING}`,
    `create table log_details_default partition of log_details default${PASSING}`,
    `create table log_expiry (
  id smallint primary key,
  project_id bigint not null,
  at_ms bigint not null,
  seq bigint not null
)`,
    'insert into log_expiry (id, project_id, at_ms, seq) values (1, -1, 0, 0)',
  ],
};

function withSettings(settings: Readonly<Record<string, string | number>>): string {
  const list = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  return ` with (${list.join(', ')})`;
}
