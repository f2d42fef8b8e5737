/** The same statements as workflow.test.ts, on PostgreSQL. */
import { WORKFLOW } from './workflow/index.ts';
import { tryStatements } from './support/statement.ts';
import { runOnPostgres } from './support/subject.ts';

runOnPostgres();
tryStatements(WORKFLOW);
