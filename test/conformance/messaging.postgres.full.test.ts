/** The statements of messaging.test.ts, on PostgreSQL. */
import { MESSAGING } from './messaging/index.ts';
import { tryStatements } from './support/statement.ts';

tryStatements(MESSAGING, { database: 'postgres' });
