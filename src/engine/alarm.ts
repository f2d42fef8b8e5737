/** What wakes the dispatcher and the loops: one timer, for the next time at which there is something to do. */
import type { Millis } from './model.ts';
import type { Clock, Timer } from './ports.ts';

/**
 * A timer for a time of day runs no longer than this. So a machine that slept, or a clock that was set, is noticed
 * soon.
 */
const SLEEP_MAX_MS = 30_000;

export class Alarm {
  readonly #clock: Pick<Clock, 'nowMs' | 'startTimer'>;
  readonly #ring: () => void;
  /** `atMs`: the time of day for which it is set; `undefined` when it is set for a delay. */
  #timer: { atMs: Millis | undefined; handle: Timer } | undefined;

  /** `ring` must check what is due: it may be called before the time that was set. */
  constructor(clock: Pick<Clock, 'nowMs' | 'startTimer'>, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  get isSet(): boolean {
    return this.#timer !== undefined;
  }

  /** Rings when `clock.nowMs` shows `atMs`, or earlier; never for `Infinity`. Replaces what was set before. */
  setAt(atMs: Millis): void {
    if (this.#timer?.atMs === atMs) return;
    if (atMs === Infinity) return this.cancel();
    this.#set(Math.min(atMs - this.#clock.nowMs(), SLEEP_MAX_MS), atMs);
  }

  /** Rings when `delayMs` have passed, whatever the clock shows then. Replaces what was set before. */
  setIn(delayMs: Millis): void {
    this.#set(delayMs, undefined);
  }

  cancel(): void {
    this.#timer?.handle.cancel();
    this.#timer = undefined;
  }

  #set(delayMs: Millis, atMs: Millis | undefined): void {
    this.#timer?.handle.cancel();
    const handle = this.#clock.startTimer(Math.max(0, delayMs), () => {
      this.#timer = undefined;
      this.#ring();
    });
    this.#timer = { atMs, handle };
  }
}
