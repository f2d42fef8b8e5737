/** Divides long work into slices, so that other work runs between them. */
import type { Millis } from '../model.ts';
import type { Clock } from '../ports.ts';

/** The duration of a slice: short compared with a network round trip, long compared with a turn of the event loop. */
const SLICE_MS = 5;

/** The slices of one long task, such as a request. */
export class Slices {
  readonly #clock: Clock;
  readonly #endOfTurn: (() => Promise<void>) | undefined;
  readonly #sliceMs: Millis;
  #startedAtMs: Millis;

  constructor(clock: Clock, endOfTurn: (() => Promise<void>) | undefined, sliceMs: Millis = SLICE_MS) {
    this.#clock = clock;
    this.#endOfTurn = endOfTurn;
    this.#sliceMs = sliceMs;
    this.#startedAtMs = clock.elapsedMs;
  }

  /**
   * Whether the slice has used up its time. Check this after each step of the work. If the result is true, await `next`.
   */
  get isOver(): boolean {
    return this.#clock.elapsedMs - this.#startedAtMs >= this.#sliceMs;
  }

  /** Calls `make` for each item, in slices. When all items fit into one slice, returns no promise. */
  map<T, U>(items: readonly T[], make: (item: T, index: number) => U): U[] | Promise<U[]> {
    const results: U[] = [];
    for (const item of items) {
      results.push(make(item, results.length));
      if (this.isOver) return this.#mapRest(items, make, results);
    }
    return results;
  }

  async #mapRest<T, U>(items: readonly T[], make: (item: T, index: number) => U, results: U[]): Promise<U[]> {
    await this.next();
    while (results.length < items.length) {
      results.push(make(items[results.length] as T, results.length));
      if (this.isOver) await this.next();
    }
    return results;
  }

  /** Lets other work run, then starts the next slice. */
  async next(): Promise<void> {
    await this.#endOfTurn?.();
    this.#startedAtMs = this.#clock.elapsedMs;
  }
}
