/** Schedules. Programs that do not know them go on with everything else; they trigger none. */
import type { SqlDialect } from '../driver.ts';
import type { Migration } from './migration.ts';

export const schedules: Migration = {
  number: 4,
  name: 'schedules',
  breaking: false,
  statements: ({ bigint, smallint, bytes, hot }: SqlDialect) => [
    // What changes with each trigger. The body is in another table, so that a trigger does not write it again.
    `create table schedules (
  key ${bigint} primary key,
  project_id ${bigint} not null,
  id text not null,
  created_at_ms ${bigint} not null,
  bytes ${bigint} not null,
  version ${bigint} not null,
  paused ${smallint} not null,
  next_at_ms ${bigint} not null,
  passed_until_ms ${bigint},
  last_at_ms ${bigint},
  last_message_key ${bigint},
  last_message_count ${bigint},
  error text
)${hot}`,
    'create unique index schedules_id on schedules (project_id, id)',
    'create index schedules_due on schedules (next_at_ms, key) where paused = 0',
    `create table schedule_plans (
  key ${bigint} primary key,
  cron text not null,
  destination text not null,
  is_group ${smallint} not null,
  method text not null,
  header text,
  settings text not null,
  delay_ms ${bigint},
  caller_ip text,
  catch_up text,
  overlap text,
  kept text,
  body ${bytes}
)`,
  ],
};
