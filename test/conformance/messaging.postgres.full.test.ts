/** The statements of messaging.test.ts that messaging.postgres.test.ts does not try, on PostgreSQL. */
import { LANES_AND_LISTS, MESSAGING } from './messaging/index.ts';
import { tryStatements } from './support/statement.ts';

tryStatements(
  MESSAGING.filter((section) => !LANES_AND_LISTS.includes(section)),
  { database: 'postgres' },
);
