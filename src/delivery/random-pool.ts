/** Random bytes for ids, drawn from the port in blocks: one call of the system's source per attempt is felt (5 %). */
import type { Randomness } from '../engine/ports.ts';
import type { RandomBytes } from '../protocol/ids.ts';

const BLOCK_BYTES = 4_096;

/** No byte is given out twice. The answer is a view that nobody else gets. */
export function randomPool(randomness: Randomness): RandomBytes {
  let block: Uint8Array = new Uint8Array(0);
  let used = 0;
  return (count) => {
    if (count > BLOCK_BYTES) return randomness.bytes(count);
    if (used + count > block.length) {
      block = randomness.bytes(BLOCK_BYTES);
      used = 0;
    }
    used += count;
    return block.subarray(used - count, used);
  };
}
