/** The statements of checkpoints.test.ts, on PostgreSQL. */
import { CHECKPOINTS } from './checkpoints/index.ts';
import { tryStatements } from './support/statement.ts';

tryStatements(CHECKPOINTS, { database: 'postgres' });
