/** How do the store's tables lie in PostgreSQL: with how much room, vacuumed how often, in which partitions? */

/**
 * For tables whose rows change all the time. Room on each page, so that a new version of a row stays on it and, if no index
 * has what changed, needs no new index entry; and a vacuum long before dead rows are in the way: with the default it would
 * wait for a fifth of the table, and a queue that reads past its dead rows becomes slower than it fills. Index entries are
 * cleaned each time, however few are dead, because the indexes are read from the end that is removed. An empty
 * file is cut, as by default: the planner then takes the size of what a burst has written for its number of rows, where it
 * would otherwise go on believing that there are none.
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
 * For tables whose rows never change. What a retention round removes, of two weeks a day, is about a fourteenth: it is to
 * be used again before the next one, also where the bodies are (TOAST). Vacuums after inserts alone come no more often than
 * by default: they mark pages that nothing of this store reads by index only.
 */
export const PASSING = withSettings({
  autovacuum_vacuum_scale_factor: 0.03,
  autovacuum_vacuum_threshold: 1_000,
  'toast.autovacuum_vacuum_scale_factor': 0.03,
});

/**
 * The logs as partitions of a day each (log-days.ts), and one for what is of no such day, as when a clock jumps: that one is
 * the table as it was. `log_expiry` has one row: whoever has locked it looks after the partitions, and in it is how far the
 * day that is being dropped has been walked through.
 */
export const LOGS_BY_DAY: readonly string[] = [
  'alter table logs rename to logs_default',
  'alter index logs_pkey rename to logs_default_pkey',
  'alter index logs_message rename to logs_default_message',
  'alter index logs_run rename to logs_default_run',
  'create table logs (like logs_default, primary key (project_id, at_ms, seq)) partition by range (at_ms)',
  'create index logs_message on logs (message_key)',
  'create index logs_run on logs (run_key, at_ms, seq) where run_key is not null',
  'alter table logs attach partition logs_default default',

  `alter table logs_default set${PASSING.slice(' with'.length)}`,
  `alter table log_details set${PASSING.slice(' with'.length)}`,

  'alter table log_details drop constraint log_details_pkey',
  'alter table log_details rename to log_details_default',
  'alter table log_details_default add primary key (seq, at_ms)',
  'create table log_details (like log_details_default, primary key (seq, at_ms)) partition by range (at_ms)',
  'alter table log_details attach partition log_details_default default',

  `create table log_expiry (
  id smallint primary key,
  project_id bigint not null,
  at_ms bigint not null,
  seq bigint not null
)`,
  'insert into log_expiry (id, project_id, at_ms, seq) values (1, -1, 0, 0)',
];

function withSettings(settings: Readonly<Record<string, string | number>>): string {
  const list = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  return ` with (${list.join(', ')})`;
}
