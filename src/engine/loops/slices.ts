/** Divides long work into slices, so that other work runs between them. */
import type { Millis } from '../model.ts';
import type { Clock } from '../ports.ts';

/** Short compared with a network round trip, long compared with a turn of the event loop. */
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

  /** Check it after each step of the work. When it is true, await `next`. */
  get isOver(): boolean {
    return this.#clock.elapsedMs - this.#startedAtMs >= this.#sliceMs;
  }

  /** Calls `make` for each item, in slices. Few items need one slice, and no promise. */
  map<T, U>(items: readonly T[], make: (item: T, index: number) => U): U[] | Promise<U[]> {
    const made: U[] = [];
    for (const item of items) {
      made.push(make(item, made.length));
      if (this.isOver) return this.#mapRest(items, make, made);
    }
    return made;
  }

  async #mapRest<T, U>(items: readonly T[], make: (item: T, index: number) => U, made: U[]): Promise<U[]> {
    await this.next();
    while (made.length < items.length) {
      made.push(make(items[made.length] as T, made.length));
      if (this.isOver) await this.next();
    }
    return made;
  }

  /** Lets other work run, then starts the next slice. */
  async next(): Promise<void> {
    await this.#endOfTurn?.();
    this.#startedAtMs = this.#clock.elapsedMs;
  }
}
