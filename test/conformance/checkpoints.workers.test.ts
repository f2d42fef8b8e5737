/** The statements of checkpoints.test.ts, each checkpoint sent to the worker that does not make the call. */
import { CHECKPOINTS } from './checkpoints/index.ts';
import { tryStatements } from './support/statement.ts';

tryStatements(CHECKPOINTS, { workers: 2 });
