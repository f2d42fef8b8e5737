/**
 * May the dispatcher claim more, or does what its endpoints have answered go first?
 *
 * After an outage everything is due at once. Claims as large as the free slots would bring more answers than are
 * settled in a moment. All that the worker does, new publishes included, would wait behind them for as long as it takes
 * to settle so many, and not one message more would go out in a second.
 */
import { Alarm } from '../alarm.ts';
import type { Clock } from '../ports.ts';

/** Attempts that are being settled, from which on claims wait: enough to fill a transaction. */
const SETTLING_MAX = 64;
/** Claims wait no longer than this: what holds up the settles of one project, such as a lock, holds up no other. */
const HOLD_MS = 250;

export class ClaimPace {
  readonly #alarm: Alarm;
  #settling = 0;
  #hasWaited = false;

  /** Calls `onTime` when claims have waited long enough. */
  constructor(clock: Clock, onTime: () => void) {
    this.#alarm = new Alarm(clock, () => {
      this.#hasWaited = true;
      onTime();
    });
  }

  /** Whether a claim has to wait. Ask when there is something to claim. */
  get isHeld(): boolean {
    if (this.#settling < SETTLING_MAX || this.#hasWaited) return false;
    if (!this.#alarm.isSet) this.#alarm.setIn(HOLD_MS);
    return true;
  }

  noteClaim(): void {
    this.#hasWaited = false;
    this.#alarm.cancel();
  }

  noteSettling(): void {
    this.#settling += 1;
  }

  noteSettled(): void {
    this.#settling -= 1;
  }

  stop(): void {
    this.#alarm.cancel();
  }
}
