/** The statements of interface.test.ts that interface.postgres.test.ts does not try, on PostgreSQL. */
import { INTERFACE, LANES_AND_LISTS } from './interface/index.ts';
import { tryStatements } from './support/statement.ts';

tryStatements(
  INTERFACE.filter((section) => !LANES_AND_LISTS.includes(section)),
  { database: 'postgres' },
);
