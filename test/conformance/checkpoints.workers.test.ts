/** The statements of checkpoints.test.ts, with each checkpoint sent to another worker than the one that makes the call. */
import { CHECKPOINTS } from './checkpoints/index.ts';
import { tryStatements } from './support/statement.ts';

tryStatements(CHECKPOINTS, { workers: 2 });
