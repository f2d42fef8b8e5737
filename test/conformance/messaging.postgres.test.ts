/** Of the statements of messaging.test.ts those on lanes and lists, on PostgreSQL. The others: messaging.postgres.full.test.ts. */
import { LANES_AND_LISTS } from './messaging/index.ts';
import { tryStatements } from './support/statement.ts';

tryStatements(LANES_AND_LISTS, { database: 'postgres' });
