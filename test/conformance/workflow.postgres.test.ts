/** The same statements as workflow.test.ts, on PostgreSQL. */

import { tryStatements } from './support/statement.ts';
import { runOnPostgres } from './support/subject.ts';
import { WORKFLOW } from './workflow/index.ts';

runOnPostgres();
tryStatements(WORKFLOW);
