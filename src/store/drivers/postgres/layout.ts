/** Storage settings of the store's tables in PostgreSQL: free space, vacuum thresholds, partitions. */

/**
 * For tables whose rows change all the time. Each page keeps free space for new versions of its rows, which then need no
 * new index entry unless an indexed column changes (HOT updates). Vacuum starts long before dead rows slow reads down: by
 * default vacuum would wait until a fifth of the table is dead, and a queue whose reads skip dead rows would fill faster
 * than it drains. Each vacuum cleans the indexes, however few entries are dead, because reads start at the end where rows
 * are removed. Vacuum truncates an empty file, as by default. After a burst, the planner then estimates the number of
 * rows from the size of the file; otherwise the planner would still expect no rows.
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
 * For tables whose rows never change. With logs of two weeks, a daily retention round removes about a fourteenth of the
 * rows. Vacuum must free the space of these rows before the next round, also in the table of the bodies (TOAST). Vacuums
 * after inserts alone run no more often than by default: they serve index-only scans, which this store does not use.
 */
export const APPEND_ONLY = withSettings({
  autovacuum_vacuum_scale_factor: 0.03,
  autovacuum_vacuum_threshold: 1_000,
  'toast.autovacuum_vacuum_scale_factor': 0.03,
});

/**
 * The logs have one partition per day (log-partitions.ts). Entries without a partition for their day, as after a clock
 * jump, go to the default partition. `log_expiry` has one row. The worker that has locked this row maintains the
 * partitions. The row contains a position: the last entry that was read in the day that is being dropped.
 */
export const LOG_PARTITIONS = {
  partitioned: ' partition by range (at_ms)',
  tables: [
    `create table logs_default partition of logs default${APPEND_ONLY}`,
    `create table log_details_default partition of log_details default${APPEND_ONLY}`,
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
