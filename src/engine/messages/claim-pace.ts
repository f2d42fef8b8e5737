/**
 * May the dispatcher claim more, or does something else go first?
 *
 * After an outage everything is due at once. Claims as large as the free slots would bring more answers than are
 * settled in a moment. All that the worker does, new publishes included, would wait behind them for as long as it takes
 * to settle so many, and not one message more would go out in a second. So what endpoints have answered goes first.
 *
 * What other transactions have locked cannot be claimed. To ask for it again at once would only slow them down.
 */
import { Alarm } from '../alarm.ts';
import type { Millis } from '../model.ts';
import type { Clock } from '../ports.ts';

/** Attempts that are being settled, from which on claims wait: enough to fill a transaction. */
const SETTLING_MAX = 64;
/** Claims wait no longer than this: what holds up the settles of one project, such as a lock, holds up no other. */
const HOLD_MS = 250;
/**
 * A claim goes beside others once the latest has waited for so long: then transactions are what takes the time. Sooner, both would
 * be answered together, and all else would wait while what they bring goes out.
 */
const BESIDE_MS = 20;
/** The pause before the next look at what others have locked. */
const LOCKED_MS = 10;

export class ClaimPace {
  readonly #settlingAlarm: Alarm;
  readonly #lockedAlarm: Alarm;
  readonly #besideAlarm: Alarm;
  readonly #clock: Clock;
  #claimedAtMs: Millis = 0;
  #sending = 0;
  #settling = 0;
  #hasWaited = false;

  /** Calls `onTime` when claims have waited long enough. */
  constructor(clock: Clock, onTime: () => void) {
    this.#clock = clock;
    const endWait = () => {
      this.#hasWaited = true;
      onTime();
    };
    this.#settlingAlarm = new Alarm(clock, endWait, 'outside');
    this.#lockedAlarm = new Alarm(clock, onTime, 'outside');
    this.#besideAlarm = new Alarm(clock, onTime, 'outside');
  }

  /** Whether a claim has to wait. Ask when there is something to claim. */
  get isHeld(): boolean {
    if (this.#lockedAlarm.isSet || this.#sending > 0) return true;
    if (this.#settling < SETTLING_MAX || this.#hasWaited) return false;
    if (!this.#settlingAlarm.isSet) this.#settlingAlarm.setIn(HOLD_MS);
    return true;
  }

  /** Whether another claim may go while one is under way. Ask when there may be something to claim. */
  get mayGoBeside(): boolean {
    const waitMs = this.#claimedAtMs + BESIDE_MS - this.#clock.elapsedMs;
    if (waitMs > 0 && !this.#besideAlarm.isSet) this.#besideAlarm.setIn(waitMs);
    return waitMs <= 0;
  }

  noteClaim(): void {
    this.#claimedAtMs = this.#clock.elapsedMs;
    this.#hasWaited = false;
    this.#settlingAlarm.cancel();
  }

  /** A claim got nothing, because others have locked what is due. */
  noteLocked(): void {
    this.#lockedAlarm.setIn(LOCKED_MS);
  }

  /** Something else is due, which may be free. */
  noteDue(): void {
    this.#lockedAlarm.cancel();
  }

  /** What a claim has brought does not go out in one turn: more would wait behind it. `noteSent` ends it. */
  noteSending(): void {
    this.#sending += 1;
  }

  noteSent(): void {
    this.#sending -= 1;
  }

  noteSettling(): void {
    this.#settling += 1;
  }

  noteSettled(): void {
    this.#settling -= 1;
  }

  stop(): void {
    for (const alarm of [this.#settlingAlarm, this.#lockedAlarm, this.#besideAlarm]) alarm.cancel();
  }
}
