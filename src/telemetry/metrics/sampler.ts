/**
 * What only the store knows is read when it is asked for, and not more often than each few seconds: an idle server reads
 * nothing (P12), and however often it is asked, the store has little to do.
 */
import type { Millis } from '../../engine/model.ts';
import type { Clock } from '../../engine/ports.ts';
import { StoreUnavailable } from '../../engine/store-errors.ts';
import type { Totals } from '../../engine/unfinished.ts';

/** Shorter than the usual intervals of Prometheus, so that each of its requests brings new numbers. */
const EVERY_MS = 4_000;

/** A store that takes longer is not waited for: what is known is told, with its age. */
const WAIT_MS = 1_000;

export interface Sample {
  totals: Totals;
  /** The time for which it holds. */
  nowMs: Millis;
  /** The same as `elapsedMs` counts. */
  takenAtMs: Millis;
}

export class Sampler {
  readonly #readTotals: () => Promise<Totals>;
  readonly #clock: Clock;
  #latest: Sample | undefined;
  #reading: Promise<void> | undefined;

  constructor(readTotals: () => Promise<Totals>, clock: Clock) {
    this.#readTotals = readTotals;
    this.#clock = clock;
  }

  /** The latest that the store has answered; `undefined`: it never did. */
  get latest(): Sample | undefined {
    return this.#latest;
  }

  /** Takes a sample if the latest is old. Resolves when it is taken, or when the store takes too long. */
  async refresh(): Promise<void> {
    const { elapsedMs } = this.#clock;
    if (this.#latest && elapsedMs - this.#latest.takenAtMs < EVERY_MS) return;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    await this.#orImpatience(this.#reading);
  }

  async #read(): Promise<void> {
    const nowMs = this.#clock.nowMs();
    const takenAtMs = this.#clock.elapsedMs;
    try {
      this.#latest = { totals: await this.#readTotals(), nowMs, takenAtMs };
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error; // the age of the latest sample says the rest
    }
  }

  async #orImpatience(reading: Promise<void>): Promise<void> {
    let resume = () => {};
    const impatience = new Promise<void>((resolve) => {
      resume = resolve;
    });
    const timer = this.#clock.startTimer(WAIT_MS, resume);
    await Promise.race([reading, impatience]);
    timer.cancel();
  }
}
