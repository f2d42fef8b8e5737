/** A timer for the next time at which there is work. The alarm wakes the dispatcher and the loops. */
import type { Millis } from '../model.ts';
import type { Clock, Timer, TimerKind } from '../ports.ts';

/**
 * A timer for a time of day runs no longer than this, so that the alarm soon notices that the machine slept or the clock
 * was set. If a test controls the clock, neither happens: the alarm rings once, after a year if necessary.
 */
const SLEEP_MAX_MS = 30_000;

export type AlarmClock = Pick<Clock, 'nowMs' | 'isSimulated' | 'startTimer'>;

export class Alarm {
  readonly #clock: AlarmClock;
  readonly #ring: () => void;
  readonly #kind: TimerKind;
  /** `atMs`: the time of day for which the timer is set; undefined if the timer is set for a delay. */
  #timer: { atMs: Millis | undefined; handle: Timer } | undefined;

  /** `ring` must check whether anything is due, because the alarm may ring before the time that was set. */
  constructor(clock: AlarmClock, ring: () => void, kind: TimerKind = 'work') {
    this.#clock = clock;
    this.#ring = ring;
    this.#kind = kind;
  }

  get isSet(): boolean {
    return this.#timer !== undefined;
  }

  /** Rings when `clock.nowMs` shows `atMs`, or earlier; never for `Infinity`. Replaces the previous setting. */
  setAt(atMs: Millis): void {
    if (this.#timer?.atMs === atMs) return;
    if (atMs === Infinity) return this.cancel();
    const delayMs = atMs - this.#clock.nowMs();
    this.#set(this.#clock.isSimulated ? delayMs : Math.min(delayMs, SLEEP_MAX_MS), atMs);
  }

  /** Rings when `delayMs` have passed, whatever the clock shows then. Replaces the previous setting. */
  setIn(delayMs: Millis): void {
    this.#set(delayMs, undefined);
  }

  cancel(): void {
    this.#timer?.handle.cancel();
    this.#timer = undefined;
  }

  #set(delayMs: Millis, atMs: Millis | undefined): void {
    this.#timer?.handle.cancel();
    const ring = () => {
      this.#timer = undefined;
      this.#ring();
    };
    const handle = this.#clock.startTimer(Math.max(0, delayMs), ring, this.#kind);
    this.#timer = { atMs, handle };
  }
}
