/**
 * Which server gave out the last numbers: the next one may not have heard of all of them.
 *
 * Programs that do not know this step give numbers out as they did before it. A database in a file has no server.
 */
import type { SqlDialect } from '../driver.ts';
import type { Migration } from './migration.ts';

export const serversOfNumbers: Migration = {
  number: 9,
  name: 'servers of numbers',
  breaking: false,
  statements: ({ manyWriters }: SqlDialect) => (manyWriters ? ['alter table numbers add column server text'] : []),
};
