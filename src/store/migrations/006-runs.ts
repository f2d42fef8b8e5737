/**
 * Workflow runs. The entries of a journal are contents, as those of any message; the journal only lists them in order.
 *
 * Programs that do not know this step would deliver an entry's own body instead of the journal.
 */
import type { SqlDialect } from '../driver.ts';
import type { Migration } from './migration.ts';

export const runs: Migration = {
  number: 6,
  name: 'runs',
  breaking: true,
  statements: ({ bigint, smallint, bytes, clustered, hot, passing }: SqlDialect) => [
    // The key of a run is the key of its first message. The content of that message has the URL, labels and
    // flow-control key by which runs are filtered.
    `create table runs (
  key ${bigint} primary key,
  project_id ${bigint} not null,
  id text not null,
  url text not null,
  created_at_ms ${bigint} not null,
  state ${smallint} not null,
  version ${bigint} not null,
  config text not null,
  entries ${bigint} not null,
  journal_bytes ${bigint} not null,
  completed_at_ms ${bigint},
  response ${bytes},
  dead_key ${bigint},
  failure_key ${bigint},
  failure_state ${smallint}
)${hot}`,
    // At most one run of an id is active.
    'create unique index runs_active on runs (project_id, id) where state = 1',
    'create index runs_id on runs (project_id, id, created_at_ms, key)',
    'create index runs_created on runs (project_id, created_at_ms, key)',
    // What retention looks for. A run with an entry in the DLQ is kept for as long as that may be resumed.
    'create index runs_completed on runs (completed_at_ms, key) where completed_at_ms is not null and dead_key is null',
    'create index runs_failed on runs (completed_at_ms, key) where dead_key is not null',

    `create table journal (
  run_key ${bigint} not null,
  position ${bigint} not null,
  kind ${smallint} not null,
  key ${bigint} not null,
  slot text not null,
  at_ms ${bigint} not null,
  primary key (run_key, position)
)${clustered}${passing}`,
    'create unique index journal_slot on journal (run_key, slot)',
    'create index journal_key on journal (key)',

    // Which invocations (keys of their records) wait for the end of a run.
    `create table invocations (
  run_key ${bigint} not null,
  key ${bigint} not null,
  parent_key ${bigint} not null,
  primary key (run_key, key)
)${clustered}${passing}`,

    // The key is that of the wait's record.
    `create table waiters (
  key ${bigint} primary key,
  project_id ${bigint} not null,
  run_key ${bigint} not null,
  event_id text not null,
  deadline_ms ${bigint} not null
)${passing}`,
    'create index waiters_event on waiters (project_id, event_id, key)',
    'create index waiters_run on waiters (run_key, event_id, key)',
    'create index waiters_deadline on waiters (deadline_ms, key)',

    `create table mail (
  key ${bigint} primary key,
  project_id ${bigint} not null,
  run_key ${bigint} not null,
  event_id text not null,
  body ${bytes}
)${passing}`,
    'create index mail_run on mail (run_key, event_id, key)',

    `alter table messages add column run_key ${bigint}`,
    `alter table messages add column journal_position ${bigint}`,
    'create index messages_run on messages (run_key, key) where run_key is not null',
    `alter table dead add column run_key ${bigint}`,
    'create index dead_runs on dead (project_id, failed_at_ms, key) where run_key is not null',
    // Events of a run itself name its first message.
    `alter table logs add column run_key ${bigint}`,
    'create index logs_run on logs (run_key, at_ms, seq) where run_key is not null',
  ],
};
