/** What docs/contract/interface.md says, statement by statement: resume, DLQ get, flow-control listing, paging limits, errors. */
import { INTERFACE } from './interface/index.ts';
import { tryStatements } from './support/statement.ts';

tryStatements(INTERFACE);
