/**
 * How many messages that wait may an origin be sent at once before it has shown how many it can take? A few at first.
 * Each good answer allows one more, which is twice as many with each round of answers, up to the origin's maximum.
 *
 * After an outage an endpoint is often starting too, and all that waits for it would meet it in its first moment. What
 * is published just now waits behind nobody and is not held back: it comes no faster than its publisher sends it.
 */
import type { Millis } from '../model.ts';

/** Attempts at first, and attempts that every origin may have. */
export const FIRST_COUNT_MAX = 4;
/** Origins that are remembered for their answers; any other one begins with a few again. */
const ORIGINS_MAX = 2_048;
/**
 * An origin that has neither answered nor failed for so long may have twice as many: one that takes a minute for each answer
 * would need many minutes otherwise.
 */
export const SILENT_MS = 1_000;

export class SlowStart {
  readonly #countMax: number;
  readonly #maxByOrigin = new Map<string, number>();
  /** Since when an origin that has not answered yet may have as many as it may; in order of these times. */
  readonly #silentSince = new Map<string, Millis>();

  constructor(countMax: number) {
    this.#countMax = countMax;
  }

  maxOf(origin: string): number {
    return this.#maxByOrigin.get(origin) ?? FIRST_COUNT_MAX;
  }

  get isRising(): boolean {
    return this.#silentSince.size > 0;
  }

  /** Those that have answered; none when they are more than `max`. */
  origins(max: number): Iterable<string> {
    return this.#maxByOrigin.size > max ? [] : this.#maxByOrigin.keys();
  }

  noteSent(origin: string, atMs: Millis): void {
    if (!this.#maxByOrigin.has(origin) && !this.#silentSince.has(origin)) this.#silentSince.set(origin, atMs);
  }

  /** A good answer, with which the origin has `count` attempts. */
  noteAnswer(origin: string, count: number): void {
    const max = this.#maxByOrigin.get(origin);
    this.#silentSince.delete(origin);
    if (max === this.#countMax) return;
    // Messages that waited behind nobody may be more already: it can take these.
    this.#set(origin, 1 + (max ?? Math.max(FIRST_COUNT_MAX, count)));
  }

  /** An answer that says that it is too much, or that the origin does not work: no more than before. */
  noteBadAnswer(origin: string): void {
    this.#silentSince.delete(origin);
  }

  noteNoAnswer(origin: string): void {
    this.#silentSince.delete(origin);
    const max = this.#maxByOrigin.get(origin);
    if (max !== undefined) this.#set(origin, Math.max(FIRST_COUNT_MAX, Math.floor(max / 2)));
  }

  /** Costs as many steps as there are origins that may have more now. */
  rise(nowMs: Millis): void {
    for (const [origin, sinceMs] of this.#silentSince) {
      if (nowMs - sinceMs < SILENT_MS) return;
      this.#silentSince.delete(origin);
      const max = this.maxOf(origin) * 2;
      this.#set(origin, max);
      if (max < this.#countMax) this.#silentSince.set(origin, nowMs);
    }
  }

  #set(origin: string, max: number): void {
    this.#maxByOrigin.set(origin, Math.min(max, this.#countMax));
    if (this.#maxByOrigin.size <= ORIGINS_MAX) return;
    const [oldest] = this.#maxByOrigin.keys();
    if (oldest !== undefined) this.#maxByOrigin.delete(oldest);
  }
}
