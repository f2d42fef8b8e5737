/** The statements of interface.test.ts, on PostgreSQL. */
import { INTERFACE } from './interface/index.ts';
import { tryStatements } from './support/statement.ts';

tryStatements(INTERFACE, { database: 'postgres' });
