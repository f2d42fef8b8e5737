/**
 * The workers that share the database, and a number that changes with every project, token and signing key.
 *
 * Programs that do not know this step send no heartbeats and share no database. They know only SQLite, where a start
 * gives back the claims of every earlier process.
 */
import type { SqlDialect } from '../driver.ts';
import type { Migration } from './migration.ts';

export const workers: Migration = {
  number: 7,
  name: 'workers',
  breaking: false,
  statements: ({ bigint, smallint, hot }: SqlDialect) => [
    // By the database's clock. If a worker sends no heartbeat for its own `timeout_ms`, any other worker may expire it.
    `create table workers (
  id text primary key,
  started_at_ms ${bigint} not null,
  beat_at_ms ${bigint} not null,
  timeout_ms ${bigint} not null,
  leaving ${smallint} not null
)${hot}`,
    "insert into numbers (name, next) values ('accounts', 1)",
  ],
};
