/**
 * By which state of the accounts does a worker admit callers and sign? Null: it does not say, as programs do not that do not
 * know this step.
 */
import type { SqlDialect } from '../driver.ts';
import type { Migration } from './migration.ts';

export const accountsOfWorkers: Migration = {
  number: 11,
  name: 'accounts of workers',
  breaking: false,
  statements: ({ bigint }: SqlDialect) => [`alter table workers add column accounts_version ${bigint}`],
};
