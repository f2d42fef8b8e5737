/**
 * The version of the accounts by which a worker admits callers and signs. Null: the worker does not say, because its
 * program does not know this step.
 */
import type { SqlDialect } from '../driver.ts';
import type { Migration } from './migration.ts';

export const accountsOfWorkers: Migration = {
  number: 11,
  name: 'accounts of workers',
  breaking: false,
  statements: ({ bigint }: SqlDialect) => [`alter table workers add column accounts_version ${bigint}`],
};
