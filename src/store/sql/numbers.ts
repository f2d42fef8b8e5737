/** Which numbers has nobody had before? */
import type { Transaction } from '../driver.ts';

/** `keys and tokens`: of messages and claims. `log entries`: orders the entries of one millisecond. `queues`: their ids. */
export type NumberSequence = 'keys and tokens' | 'log entries' | 'queues';

/** The first of `count` consecutive numbers that are given to nobody else, ever. */
export async function reserve(tx: Transaction, sequence: NumberSequence, count: number): Promise<number> {
  const [row] = await tx.queryAtOnce<{ next: number }>(
    'update numbers set next = next + ? where name = ? returning next',
    [count, sequence],
  );
  if (!row) throw new Error(`the number sequence "${sequence}" is missing`);
  return row.next - count;
}
