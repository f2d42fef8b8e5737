/**
 * The statements of docs/contract/interface.md: queue resume, single DLQ entries, the list of flow-control keys, page limits,
 * errors.
 */
import { INTERFACE } from './interface/index.ts';
import { tryStatements } from './support/statement.ts';

tryStatements(INTERFACE);
