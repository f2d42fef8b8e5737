/** Of the statements of workflow.test.ts those on lanes and lists, on PostgreSQL. The others: workflow.postgres.full.test.ts. */
import { tryStatements } from './support/statement.ts';
import { LANES_AND_LISTS } from './workflow/index.ts';

tryStatements(LANES_AND_LISTS, { database: 'postgres' });
