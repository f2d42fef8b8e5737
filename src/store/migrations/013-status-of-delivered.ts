/**
 * The status with which a message was delivered. That of an error is with its answer in `log_details`, which a delivered
 * message has no row in.
 *
 * Entries of programs that do not know this step have none.
 */
import type { SqlDialect } from '../driver.ts';
import type { Migration } from './migration.ts';

export const statusOfDelivered: Migration = {
  number: 13,
  name: 'status of delivered',
  breaking: false,
  statements: ({ smallint }: SqlDialect) => [`alter table logs add column response_status ${smallint}`],
};
