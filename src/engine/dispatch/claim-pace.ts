/**
 * Decides when the worker may claim more messages.
 *
 * After an outage, all messages are due at once. Claims as large as the free slots would bring more outcomes than the
 * worker can settle in a moment. All other work, such as new publishes, would wait behind these settles, without a higher
 * throughput. So attempts that have an outcome are settled first.
 *
 * Messages that other transactions have locked cannot be claimed. Another claim at once would only slow these
 * transactions down.
 */
import { Alarm } from '../loops/alarm.ts';
import type { Millis } from '../model.ts';
import type { Clock } from '../ports.ts';

/** Claims wait while at least this many attempts are being settled, which is enough to fill a transaction. */
const SETTLING_MAX = 64;
/** The longest time that claims wait: a lock that blocks the settles of one project must not block other projects. */
const WAIT_MAX_MS = 250;
/**
 * A second claim may start once the latest claim has been pending for this long: then transactions are the bottleneck. If
 * the second claim started sooner, both results would come together, and all other work would wait while their messages
 * are sent.
 */
const OVERLAP_AFTER_MS = 20;
/** The pause after a claim that found everything locked. */
const LOCKED_PAUSE_MS = 10;

export class ClaimPace {
  readonly #settlingAlarm: Alarm;
  readonly #lockedAlarm: Alarm;
  readonly #overlapAlarm: Alarm;
  readonly #clock: Clock;
  #claimedAtMs: Millis = 0;
  #sending = 0;
  #settling = 0;
  #hasWaited = false;

  /** Calls `onTime` when a claim that had to wait may be made. */
  constructor(clock: Clock, onTime: () => void) {
    this.#clock = clock;
    const endWait = () => {
      this.#hasWaited = true;
      onTime();
    };
    this.#settlingAlarm = new Alarm(clock, endWait, 'outside');
    this.#lockedAlarm = new Alarm(clock, onTime, 'outside');
    this.#overlapAlarm = new Alarm(clock, onTime, 'outside');
  }

  /** Whether a claim has to wait. Read this only when there are messages to claim. */
  get mustWait(): boolean {
    if (this.#lockedAlarm.isSet || this.#sending > 0) return true;
    if (this.#settling < SETTLING_MAX || this.#hasWaited) return false;
    if (!this.#settlingAlarm.isSet) this.#settlingAlarm.setIn(WAIT_MAX_MS);
    return true;
  }

  /** Whether another claim may start while one claim is pending. Read this only when there may be messages to claim. */
  get mayOverlap(): boolean {
    const waitMs = this.#claimedAtMs + OVERLAP_AFTER_MS - this.#clock.elapsedMs;
    if (waitMs > 0 && !this.#overlapAlarm.isSet) this.#overlapAlarm.setIn(waitMs);
    return waitMs <= 0;
  }

  noteClaim(): void {
    this.#claimedAtMs = this.#clock.elapsedMs;
    this.#hasWaited = false;
    this.#settlingAlarm.cancel();
  }

  /** Notes that a claim returned nothing, because other transactions have locked the due messages. */
  noteLocked(): void {
    this.#lockedAlarm.setIn(LOCKED_PAUSE_MS);
  }

  /** Notes that another message is due. Perhaps no transaction has locked this message. */
  noteDue(): void {
    this.#lockedAlarm.cancel();
  }

  /** Notes that sending the messages of a claim takes more than one turn of the event loop, until `noteSent`. */
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
    for (const alarm of [this.#settlingAlarm, this.#lockedAlarm, this.#overlapAlarm]) alarm.cancel();
  }
}
