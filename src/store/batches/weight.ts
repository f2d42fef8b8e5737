/** How much of a transaction does a command take up? */
import { traitsOf, type WriteCommand } from '../operations/all.ts';
import { weightOf } from '../operations/messages/new-messages.ts';
import type { StoredNewMessage } from '../operations/messages/rows.ts';
import type { Weight } from '../operations/operation.ts';

/** Cost of one transaction, counted in rows of small messages. Longer transactions keep other commands waiting. */
export const BATCH_COST_MAX = 200;
/** This many bytes cost as much as one row: 4 MiB fill a transaction. */
const BYTES_PER_ROW = (4 * 1024 * 1024) / BATCH_COST_MAX;

/** At least 1. */
export function costOf(command: WriteCommand): number {
  return cost(traitsOf(command).weight(command.args));
}

/** At least 1. */
export function costOfMessages(messages: readonly StoredNewMessage[]): number {
  return cost(weightOf(messages));
}

function cost({ rows, bytes = 0 }: Weight): number {
  return Math.max(1, rows, Math.ceil(bytes / BYTES_PER_ROW));
}
