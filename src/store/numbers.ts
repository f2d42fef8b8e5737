/** Reserves numbers of a sequence that were never used before. */
import { StoreUnavailable } from '../engine/store-errors.ts';
import type { NumberSequence, Queries } from './driver.ts';

/**
 * Reserves `count` numbers of a sequence and returns the first. `update` raises the sequence's `next`, and returns `next`
 * with `until`, the end of this cell's range. The parameters of `update` are the count and the name of the sequence.
 * Throws `StoreUnavailable` when the range is used up.
 */
export async function reserveNumbers(
  queries: Queries,
  update: string,
  sequence: NumberSequence,
  count: number,
): Promise<number> {
  const [row] = await queries.query<{ next: number; until: number | null }>(update, [count, sequence]);
  if (!row) throw new Error(`the number sequence "${sequence}" is missing`);
  if (row.until !== null && row.next > row.until) {
    throw new StoreUnavailable(`this cell has used up its numbers ("${sequence}"): move its projects to another one`);
  }
  return row.next - count;
}
