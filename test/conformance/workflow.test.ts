/** The conformance checklist of workflow.md section 26, statement by statement, over HTTP against a whole server. */
import { tryStatements } from './support/statement.ts';
import { WORKFLOW } from './workflow/index.ts';

tryStatements(WORKFLOW);
