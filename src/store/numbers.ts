/** How are numbers taken that nobody has had before? */
import type { NumberSequence, Queries } from './driver.ts';

/** `update` raises the `next` of a sequence, bound as how many and which, and returns it; answers the first of those taken. */
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
