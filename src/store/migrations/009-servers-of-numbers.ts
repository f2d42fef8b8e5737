/**
 * The server that gave the last numbers: the next server may not know all of them.
 *
 * Programs that do not know this step give numbers as they did before. A database in a file has no server.
 */
import type { SqlDialect } from '../driver.ts';
import type { Migration } from './migration.ts';

export const serversOfNumbers: Migration = {
  number: 9,
  name: 'servers of numbers',
  breaking: false,
  statements: ({ manyWriters }: SqlDialect) => (manyWriters ? ['alter table numbers add column server text'] : []),
};
