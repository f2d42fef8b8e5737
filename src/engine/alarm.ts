/** What wakes the dispatcher and the loops: one timer, for the next time at which there is something to do. */
import type { Millis } from './model.ts';
import type { Clock, Timer } from './ports.ts';

/** The timer is set no further ahead for a time of day, so that a machine that slept or whose clock was set is noticed soon. */
const SLEEP_MAX_MS = 30_000;

export class Alarm {
  readonly #clock: Pick<Clock, 'nowMs' | 'startTimer'>;
  readonly #ring: () => void;
  /** `atMs`: the time of day that it is for, if it is for one. */
  #timer: { atMs: Millis | undefined; handle: Timer } | undefined;

  /** `ring` looks for itself what is due: it may be called before the time that was set. */
  constructor(clock: Pick<Clock, 'nowMs' | 'startTimer'>, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  get isSet(): boolean {
    return this.#timer !== undefined;
  }

  /** Rings when `clock.nowMs` shows `atMs`, or earlier, and not as was set before; never, when that is `Infinity`. */
  setAt(atMs: Millis): void {
    if (this.#timer?.atMs === atMs) return;
    if (atMs === Infinity) return this.cancel();
    this.#set(Math.min(atMs - this.#clock.nowMs(), SLEEP_MAX_MS), atMs);
  }

  /** Rings when `delayMs` have passed, whatever the clock shows then, and not as was set before. */
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
