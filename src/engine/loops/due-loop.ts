/**
 * A loop that does due work in batches. The loop sleeps until the earliest known due time, and does not query the store
 * before this time (P12).
 */

import type { EngineDeps } from '../deps.ts';
import type { Millis } from '../model.ts';
import type { TimerKind } from '../ports.ts';
import { StoreUnavailable } from '../store-errors.ts';
import { Alarm } from './alarm.ts';

/** The pause after a failure of the store. */
const STORE_RETRY_MS = 1_000;

/**
 * Does a batch of the due work. Returns `'more'` if it has done any work; otherwise the earliest time at which work will
 * be due, `Infinity` for never. Throws `StoreUnavailable`: work that was not saved is still due.
 */
type DoBatch = () => Promise<'more' | Millis>;

export class DueLoop {
  readonly #context: Pick<EngineDeps, 'clock' | 'log'>;
  readonly #failure: string;
  readonly #doBatch: DoBatch;
  #nextAtMs: Millis = 0; // unknown at start: run at once
  /** The earliest due time that was noted during the current batch, perhaps after the batch had read the store. */
  #notedAtMs: Millis = Infinity;
  readonly #alarm: Alarm;
  #round: Promise<void> | undefined;
  #stopped = false;

  /** `failure`: the log event for when the store could not be read or written. */
  constructor(context: Pick<EngineDeps, 'clock' | 'log'>, failure: string, doBatch: DoBatch, timerKind?: TimerKind) {
    this.#context = context;
    this.#failure = failure;
    this.#doBatch = doBatch;
    this.#alarm = new Alarm(context.clock, () => this.wake(), timerKind);
  }

  /** Does the due work, or sleeps until some work is due. */
  wake(): void {
    if (this.#round !== undefined || this.#stopped) return;
    if (this.#nextAtMs > this.#context.clock.nowMs()) return this.#alarm.setAt(this.#nextAtMs);
    this.#round = this.#doAll().then((pauseMs) => {
      this.#round = undefined;
      if (pauseMs === 0) this.wake();
      else if (!this.#stopped) this.#alarm.setIn(pauseMs);
    });
  }

  /** Notes that work was saved that is due at `atMs`. */
  noteNext(atMs: Millis): void {
    this.#notedAtMs = Math.min(this.#notedAtMs, atMs);
    this.#nextAtMs = Math.min(this.#nextAtMs, atMs);
    this.wake();
  }

  /** Starts no more batches. Resolves when the current batch is done. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#alarm.cancel();
    await this.#round;
  }

  /** Repeats until nothing is due. Returns how long to pause: 0, unless the store failed. */
  async #doAll(): Promise<Millis> {
    try {
      while (!this.#stopped) {
        this.#notedAtMs = Infinity;
        const next = await this.#doBatch();
        if (next === 'more') continue;
        this.#nextAtMs = Math.min(next, this.#notedAtMs);
        break;
      }
      return 0;
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      this.#context.log.warn(this.#failure, { reason: error.message });
      return STORE_RETRY_MS;
    }
  }
}
