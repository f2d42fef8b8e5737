/**
 * How many messages that wait may an origin be sent at once before it has shown how many it can take? A few at first.
 * Each good answer allows one more, which is twice as many with each round of answers, up to the origin's maximum. Silent attempts
 * do not count, and as many as are silent may be sent at once: so an origin that takes a minute for each answer gets twice as many
 * each time its latest attempts have become silent.
 *
 * After an outage an endpoint is often starting too, and all that waits for it would meet it in its first moment. What
 * is published just now waits behind nobody and is not held back: it comes no faster than its publisher sends it.
 */
/** Attempts at first, and attempts that every origin may have. */
export const FIRST_COUNT_MAX = 4;
/** Origins that are remembered for their answers; any other one begins with a few again. */
const ORIGINS_MAX = 2_048;

export class SlowStart {
  readonly #countMax: number;
  readonly #maxByOrigin = new Map<string, number>();

  constructor(countMax: number) {
    this.#countMax = countMax;
  }

  maxOf(origin: string): number {
    return this.#maxByOrigin.get(origin) ?? FIRST_COUNT_MAX;
  }

  /** Those that have answered; none when they are more than `max`. */
  origins(max: number): Iterable<string> {
    return this.#maxByOrigin.size > max ? [] : this.#maxByOrigin.keys();
  }

  /** A good answer, with which the origin has `count` attempts. */
  noteAnswer(origin: string, count: number): void {
    const max = this.#maxByOrigin.get(origin);
    if (max === this.#countMax) return;
    // Messages that waited behind nobody may be more already: it can take these.
    this.#set(origin, 1 + (max ?? Math.max(FIRST_COUNT_MAX, count)));
  }

  noteNoAnswer(origin: string): void {
    const max = this.#maxByOrigin.get(origin);
    if (max !== undefined) this.#set(origin, Math.max(FIRST_COUNT_MAX, Math.floor(max / 2)));
  }

  #set(origin: string, max: number): void {
    this.#maxByOrigin.set(origin, Math.min(max, this.#countMax));
    if (this.#maxByOrigin.size <= ORIGINS_MAX) return;
    const [oldest] = this.#maxByOrigin.keys();
    if (oldest !== undefined) this.#maxByOrigin.delete(oldest);
  }
}
