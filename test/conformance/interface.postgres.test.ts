/** Of the statements of interface.test.ts those on lanes and lists, on PostgreSQL. The others: interface.postgres.full.test.ts. */
import { LANES_AND_LISTS } from './interface/index.ts';
import { tryStatements } from './support/statement.ts';

tryStatements(LANES_AND_LISTS, { database: 'postgres' });
