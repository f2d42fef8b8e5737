/** The statements of the workflow checklist (contract W 26), over HTTP with a complete server. */
import { tryStatements } from './support/statement.ts';
import { WORKFLOW } from './workflow/index.ts';

tryStatements(WORKFLOW);
