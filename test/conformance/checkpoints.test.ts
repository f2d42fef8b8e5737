import { CHECKPOINTS } from './checkpoints/index.ts';
import { tryStatements } from './support/statement.ts';

tryStatements(CHECKPOINTS);
