/**
 * The details of a log entry have its time too, so that both can be stored by the day.
 *
 * Programs that do not know this step would write details without a time, which no retention finds.
 */
import type { SqlDialect } from '../driver.ts';
import type { Migration } from './migration.ts';

export const logDays: Migration = {
  number: 8,
  name: 'log days',
  breaking: true,
  statements: ({ bigint, logsByDay }: SqlDialect) => [
    `alter table log_details add column at_ms ${bigint}`,
    'update log_details set at_ms = l.at_ms from logs l where l.seq = log_details.seq',
    ...logsByDay,
  ],
};
