/** The checklist of messaging (contract M 29), statement by statement, over HTTP against a whole server. */
import { MESSAGING } from './messaging/index.ts';
import { tryStatements } from './support/statement.ts';

tryStatements(MESSAGING);
