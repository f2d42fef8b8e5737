/**
 * How often in a row a message of a run was parked, since the code of its workflow has changed; null: its last attempt had
 * another outcome. 0: somebody has asked for the next attempt.
 *
 * Programs that do not know this step count such an attempt as failed.
 */
import type { SqlDialect } from '../driver.ts';
import type { Migration } from './migration.ts';

export const parkedRuns: Migration = {
  number: 15,
  name: 'parked runs',
  breaking: false,
  statements: ({ bigint }: SqlDialect) => [
    `alter table messages add column parkings ${bigint}`,
    'create index messages_of_parked_runs on messages (project_id, run_key, key) where parkings is not null',
  ],
};
