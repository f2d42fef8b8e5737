/**
 * What time is it for all workers on one database? The database's own clock says, and each beat of a worker measures it;
 * in between the worker counts the time that passes, so that nobody who sets the machine's clock is noticed.
 */
import type { Millis } from './model.ts';
import type { Clock, Timer } from './ports.ts';

export class DatabaseClock implements Clock {
  readonly #clock: Clock;
  /** What the database's clock shows when the machine has counted none. */
  #offsetMs: Millis | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The machine's time until the first measurement. */
  nowMs(): Millis {
    return this.#offsetMs === undefined ? this.#clock.nowMs() : Math.floor(this.#offsetMs + this.#clock.elapsedMs);
  }

  get elapsedMs(): Millis {
    return this.#clock.elapsedMs;
  }

  startTimer(delayMs: Millis, task: () => void): Timer {
    return this.#clock.startTimer(delayMs, task);
  }

  /**
   * The database's clock showed `nowMs` at some moment between `askedAtMs` and now, both as `elapsedMs` counts. What is
   * known and may be right stays: a slow answer says little, and must not move the time of a worker to and fro.
   */
  correct(nowMs: Millis, askedAtMs: Millis): void {
    const lowestMs = nowMs - this.#clock.elapsedMs;
    const highestMs = nowMs - askedAtMs;
    const knownMs = this.#offsetMs ?? (lowestMs + highestMs) / 2;
    this.#offsetMs = Math.min(Math.max(knownMs, lowestMs), highestMs);
  }
}
