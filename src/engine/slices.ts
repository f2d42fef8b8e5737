/** Long work is done in slices, between which everybody else has a turn. */
import type { Clock } from './ports.ts';

/** Short beside what a network takes, long beside the way around the event loop. */
const SLICE_MS = 5;

/** Where one request's work is done that may be long. */
export class Slices {
  readonly #clock: Clock;
  readonly #endOfTurn: (() => Promise<void>) | undefined;
  #beganAtMs: number;

  constructor(clock: Clock, endOfTurn: (() => Promise<void>) | undefined) {
    this.#clock = clock;
    this.#endOfTurn = endOfTurn;
    this.#beganAtMs = clock.elapsedMs;
  }

  /** To be asked after each piece of the work: when it is true, `next` is to be awaited. */
  get isOver(): boolean {
    return this.#clock.elapsedMs - this.#beganAtMs >= SLICE_MS;
  }

  /** What `make` makes of each item. */
  async map<T, U>(items: readonly T[], make: (item: T, index: number) => U): Promise<U[]> {
    const made: U[] = [];
    for (const [index, item] of items.entries()) {
      made.push(make(item, index));
      if (this.isOver) await this.next();
    }
    return made;
  }

  /** Gives way to others. */
  async next(): Promise<void> {
    await this.#endOfTurn?.();
    this.#beganAtMs = this.#clock.elapsedMs;
  }
}
