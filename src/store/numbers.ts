/** How are numbers taken that were never used before? */
import type { NumberSequence, Queries } from './driver.ts';

/**
 * Takes `count` numbers of a sequence and answers the first of them. `update` raises the sequence's `next` and returns
 * it; its parameters are the count and the name of the sequence.
 */
export async function takeNumbers(
  queries: Queries,
  update: string,
  sequence: NumberSequence,
  count: number,
): Promise<number> {
  const [row] = await queries.query<{ next: number }>(update, [count, sequence]);
  if (!row) throw new Error(`the number sequence "${sequence}" is missing`);
  return row.next - count;
}
