/**
 * What is counted of a project's messages and runs in each minute. The buckets of the two histograms are columns, so that
 * workers can add to them without reading.
 *
 * Programs that do not know this step count nothing and drop nothing of it.
 */
import type { SqlDialect } from '../driver.ts';
import type { Migration } from './migration.ts';

const COUNTS = [
  'accepted',
  'delivered',
  'failed_attempts',
  'dead',
  'runs_started',
  'runs_succeeded',
  'runs_failed',
  'runs_canceled',
];
const BUCKETS = Array.from({ length: 12 }, (_, index) => index);

export const minutes: Migration = {
  number: 12,
  name: 'minutes',
  breaking: false,
  statements: ({ bigint, clustered, hot }: SqlDialect) => [
    `create table minutes (
  project_id ${bigint} not null,
  at_ms ${bigint} not null,
${[...COUNTS, ...BUCKETS.map((index) => `latency_${index}`), ...BUCKETS.map((index) => `lag_${index}`)]
  .map((name) => `  ${name} ${bigint} not null,`)
  .join('\n')}
  primary key (project_id, at_ms)
)${clustered}${hot}`,
    'create index minutes_at on minutes (at_ms, project_id)',
  ],
};
