/** What clients in different languages send for the same, over HTTP against a whole server. */
import { CLIENTS } from './clients/index.ts';
import { tryStatements } from './support/statement.ts';

tryStatements(CLIENTS);
