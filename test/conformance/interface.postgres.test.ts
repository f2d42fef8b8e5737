/** The same statements as interface.test.ts, on PostgreSQL. */
import { INTERFACE } from './interface/index.ts';
import { tryStatements } from './support/statement.ts';
import { runOnPostgres } from './support/subject.ts';

runOnPostgres();
tryStatements(INTERFACE);
