/**
 * Does what has become due, piece by piece. It sleeps until the earliest time it knows of and asks the store nothing
 * meanwhile (P12).
 */

import type { Millis } from '../model.ts';
import type { Clock, EventLog, TimerKind } from '../ports.ts';
import { StoreUnavailable } from '../store-errors.ts';
import { Alarm } from './alarm.ts';

/** Pause after the store could not be read or written. */
const STORE_RETRY_MS = 1_000;

export interface DueLoopDeps {
  clock: Clock;
  log: EventLog;
  /** The log event for when the store could not be read or written. */
  failure: string;
  /**
   * Does a piece of what is due. Answers `'more'` when it has done something, and otherwise the earliest time at which
   * something will be due: `Infinity` for never. Throws `StoreUnavailable`: what was not saved is still due.
   */
  doPiece: () => Promise<'more' | Millis>;
  /** Default: `work`. */
  timerKind?: TimerKind;
}

export class DueLoop {
  readonly #deps: DueLoopDeps;
  #nextAtMs: Millis = 0; // unknown at start: look at once
  /** The earliest time that was noted while a piece was under way. It may be newer than what the piece has read. */
  #heardAtMs: Millis = Infinity;
  readonly #alarm: Alarm;
  #round: Promise<void> | undefined;
  #stopped = false;

  constructor(deps: DueLoopDeps) {
    this.#deps = deps;
    this.#alarm = new Alarm(deps.clock, () => this.wake(), deps.timerKind);
  }

  /** Does what is due, or sleeps until something will be. */
  wake(): void {
    if (this.#round !== undefined || this.#stopped) return;
    if (this.#nextAtMs > this.#deps.clock.nowMs()) return this.#alarm.setAt(this.#nextAtMs);
    this.#round = this.#doAll().then((pauseMs) => {
      this.#round = undefined;
      if (pauseMs === 0) this.wake();
      else if (!this.#stopped) this.#alarm.setIn(pauseMs);
    });
  }

  /** Something was saved that is due at `atMs`. */
  noteNext(atMs: Millis): void {
    this.#heardAtMs = Math.min(this.#heardAtMs, atMs);
    this.#nextAtMs = Math.min(this.#nextAtMs, atMs);
    this.wake();
  }

  /** Resolves when the piece under way is done; no other begins. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#alarm.cancel();
    await this.#round;
  }

  /** Goes on until nothing is due. Returns how long to pause: 0, unless the store failed. */
  async #doAll(): Promise<Millis> {
    const { doPiece, log, failure } = this.#deps;
    try {
      while (!this.#stopped) {
        this.#heardAtMs = Infinity;
        const next = await doPiece();
        if (next === 'more') continue;
        this.#nextAtMs = Math.min(next, this.#heardAtMs);
        break;
      }
      return 0;
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      log.warn(failure, { reason: error.message });
      return STORE_RETRY_MS;
    }
  }
}
