/** The statements of the messaging checklist (contract M 29), over HTTP with a complete server. */
import { MESSAGING } from './messaging/index.ts';
import { tryStatements } from './support/statement.ts';

tryStatements(MESSAGING);
