/** What names a token and tells whether it is still in use; how many messages a project had on each day. */
import type { SqlDialect } from '../driver.ts';
import type { Migration } from './migration.ts';

export const tokens: Migration = {
  number: 5,
  name: 'tokens',
  breaking: false,
  statements: ({ bigint, clustered }: SqlDialect) => [
    'alter table tokens add column name text',
    `alter table tokens add column last_used_at_ms ${bigint}`,
    // Written only while there is a limit; days of the Unix time.
    `create table message_counts (
  project_id ${bigint} not null,
  day ${bigint} not null,
  messages ${bigint} not null,
  primary key (project_id, day)
)${clustered}`,
  ],
};
