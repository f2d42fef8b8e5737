/** Which numbers has nobody had before? */
import type { Transaction } from '../driver.ts';

/** `keys and tokens`: of messages and claims. `log entries`: orders the entries of one millisecond. `queues`: their ids. */
export type NumberSequence = 'keys and tokens' | 'log entries' | 'queues';

/**
 * The first of `count` consecutive numbers that are given to nobody else, ever. Until the end of the transaction all others
 * wait for the sequence: what is needed often is taken in a transaction of its own.
 */
export async function reserve(tx: Transaction, sequence: NumberSequence, count: number): Promise<number> {
  const [row] = await tx.query<{ next: number }>('update numbers set next = next + ? where name = ? returning next', [
    count,
    sequence,
  ]);
  if (!row) throw new Error(`the number sequence "${sequence}" is missing`);
  return row.next - count;
}
