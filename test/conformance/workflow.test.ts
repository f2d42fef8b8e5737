/** The checklist of workflows (contract W 26), statement by statement, over HTTP against a whole server. */
import { tryStatements } from './support/statement.ts';
import { WORKFLOW } from './workflow/index.ts';

tryStatements(WORKFLOW);
