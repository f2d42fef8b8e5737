/**
 * Unique numbers, for message keys and claim tokens. Blocks of numbers are reserved in the store, so most calls need no
 * round trip. A crash wastes the unused numbers of a block.
 */
import type { Store } from '../../store/store.ts';

/** The size of a block: enough numbers for about a second at full speed. */
const BLOCK = 20_000;

export class Numbers {
  readonly #reserve: (count: number) => Promise<number>;
  readonly #isShared: boolean;
  #next = 0;
  #end = 0;
  /** The block after the current block, requested before it is needed. */
  #following: Promise<number> | undefined;

  /** `isShared`: other workers take numbers from the same store. */
  constructor(
    store: { messages: Pick<Store['messages'], 'reserveNumbers'> },
    { isShared = false }: { isShared?: boolean } = {},
  ) {
    this.#reserve = (count) => store.messages.reserveNumbers({ count });
    this.#isShared = isShared;
  }

  /** The first of `count` consecutive numbers. Throws `StoreUnavailable`. */
  take(count: number): number | Promise<number> {
    if (count > BLOCK) return this.#reserve(count);
    const first = this.#next;
    if (first + count > this.#end) return this.#takeFromNextBlock(count);
    this.#next += count;
    if (this.#end - this.#next < BLOCK / 2) void this.#prefetch();
    return first;
  }

  /**
   * A number that is larger than all numbers that any worker has taken so far, for use where the order of arrival across
   * workers matters. With several workers, this call costs a round trip to the store. Throws `StoreUnavailable`.
   */
  takeLatest(): number | Promise<number> {
    return this.#isShared ? this.#reserve(1) : this.take(1);
  }

  async #takeFromNextBlock(count: number): Promise<number> {
    // Several callers may wait for the same block: a caller that finds too few numbers left fetches another block.
    while (this.#next + count > this.#end) {
      const start = await this.#prefetch();
      if (start < this.#end) continue; // another caller has opened it already
      this.#next = start;
      this.#end = start + BLOCK;
      this.#following = undefined;
    }
    const first = this.#next;
    this.#next += count;
    return first;
  }

  #prefetch(): Promise<number> {
    if (!this.#following) {
      const following = this.#reserve(BLOCK);
      this.#following = following;
      // The callers that await the block get the error. The next caller that needs a block requests it again.
      following.catch(() => {
        if (this.#following === following) this.#following = undefined;
      });
    }
    return this.#following;
  }
}
