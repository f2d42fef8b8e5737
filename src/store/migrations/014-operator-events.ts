/**
 * What an operator is to be told: facts that are not counted yet, and what is counted of each kind and project.
 *
 * Programs that do not know this step write no facts, and tell nobody.
 */
import type { SqlDialect } from '../driver.ts';
import type { Migration } from './migration.ts';

export const operatorEvents: Migration = {
  number: 14,
  name: 'operator events',
  breaking: false,
  statements: ({ bigint, clustered, hot }: SqlDialect) => [
    `create table operator_facts (
  key ${bigint} primary key,
  kind text not null,
  project_id ${bigint} not null,
  at_ms ${bigint} not null,
  example text not null
)${hot}`,
    `create table operator_events (
  kind text not null,
  project_id ${bigint} not null,
  facts ${bigint} not null,
  first_at_ms ${bigint} not null,
  last_at_ms ${bigint} not null,
  example text not null,
  quiet_until_ms ${bigint} not null,
  told_example text,
  due_at_ms ${bigint},
  primary key (kind, project_id)
)${clustered}${hot}`,
    'create index operator_events_due on operator_events (due_at_ms) where due_at_ms is not null',
  ],
};
