/** The statements of workflow.test.ts, on PostgreSQL. */
import { tryStatements } from './support/statement.ts';
import { WORKFLOW } from './workflow/index.ts';

tryStatements(WORKFLOW, { database: 'postgres' });
