/**
 * How many attempts may an endpoint have at a time? Each origin has two windows, which its answers open and its failures halve:
 *
 * - for *all* attempts: the configured maximum, halved by each attempt that ends without an answer, one more with each answer.
 * - for *backlogged* messages, a slow start: a few at first, one more with each good answer, which doubles them with each
 *   round of answers. After an outage an endpoint is often starting too, and its whole backlog would meet it in its first moment.
 *   A message that has just been published is not held back: it comes no faster than its publisher sends it.
 *
 * Neither window is ever smaller than a few attempts: an endpoint that comes back must be noticed soon.
 */

/** The smallest window. */
export const FEW = 4;
/** Origins that are remembered for their answers, and for missing ones: the latest of each. */
const STARTED_MAX = 2_048;
const REDUCED_MAX = 512;

export class EndpointWindows {
  readonly #countMax: number;
  /** By origin; absent: the configured maximum. */
  readonly #reduced = new Map<string, number>();
  /** By origin; absent: a few. */
  readonly #started = new Map<string, number>();

  /** `countMax`: attempts to any origin at a time. */
  constructor(countMax: number) {
    this.#countMax = countMax;
  }

  /** Attempts at a time. */
  maxOf(origin: string): number {
    return this.#reduced.get(origin) ?? this.#countMax;
  }

  /** Attempts of backlogged messages at a time, silent ones not counted. */
  startOf(origin: string): number {
    return this.#started.get(origin) ?? FEW;
  }

  /** Whether attempts ended without an answer so often that the origin has the smallest window. */
  isHeldBack(origin: string): boolean {
    return (this.#reduced.get(origin) ?? Infinity) <= FEW;
  }

  /** Origins with windows of their own. Those that have answered only if they are at most `startedMax`. */
  origins(startedMax: number): Iterable<string> {
    return [...this.#reduced.keys(), ...(this.#started.size > startedMax ? [] : this.#started.keys())];
  }

  /**
   * An attempt ended with an answer, when the origin had `count` of them. One that is not good says that it is too much, or that the
   * origin does not work: then backlogged messages get no more than before.
   */
  noteAnswer(origin: string, isGood: boolean, count: number): void {
    const started = this.#started.get(origin);
    // Messages that waited behind nobody may be more already: it can take these.
    if (isGood && started !== this.#countMax) this.#start(origin, 1 + (started ?? Math.max(FEW, count)));
    const reduced = this.#reduced.get(origin);
    if (reduced === undefined) return;
    if (reduced + 1 < this.#countMax) this.#reduced.set(origin, reduced + 1);
    else this.#reduced.delete(origin);
  }

  /** An attempt ended without an answer. Returns whether the origin has the smallest window from now on. */
  noteNoAnswer(origin: string): boolean {
    const started = this.#started.get(origin);
    if (started !== undefined) this.#start(origin, halved(started));
    const max = this.maxOf(origin);
    if (max <= FEW) return false;
    forgetFirst(this.#reduced, REDUCED_MAX - 1);
    this.#reduced.set(origin, halved(max));
    return this.isHeldBack(origin);
  }

  #start(origin: string, max: number): void {
    this.#started.set(origin, Math.min(max, this.#countMax));
    forgetFirst(this.#started, STARTED_MAX);
  }
}

function halved(count: number): number {
  return Math.max(FEW, Math.floor(count / 2));
}

function forgetFirst(map: Map<string, number>, sizeMax: number): void {
  const [first] = map.keys();
  if (map.size > sizeMax && first !== undefined) map.delete(first);
}
