/** The statements of workflow.test.ts, on PostgreSQL. */
import { WORKFLOW } from './workflow/index.ts';
import { tryStatements } from './support/statement.ts';

tryStatements(WORKFLOW, { database: 'postgres' });
