/**
 * Runs that are over, of which more messages are left than one transaction cancels. The others follow in pieces; none of
 * them is claimed any more.
 *
 * Programs that do not know this step leave these messages as they are, and deliver them.
 */
import type { SqlDialect } from '../driver.ts';
import type { Migration } from './migration.ts';

export const endingRuns: Migration = {
  number: 17,
  name: 'ending runs',
  breaking: false,
  statements: ({ bigint, passing }: SqlDialect) => [
    `create table ending_runs (
  key ${bigint} primary key,
  project_id ${bigint} not null
)${passing}`,
  ],
};
