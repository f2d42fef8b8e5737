/** The requests that clients in different languages send for the same purpose, over HTTP to a complete server. */
import { CLIENTS } from './clients/index.ts';
import { tryStatements } from './support/statement.ts';

tryStatements(CLIENTS);
