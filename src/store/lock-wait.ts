/**
 * How long does a batch wait for what another has locked, before it goes on without?
 *
 * As long as others that work may take, since they let go soon; not as long as one that hangs, because everything that goes
 * along waits too. How long that is depends on the machine and on the database's disk, so it is measured.
 */
import type { Millis } from '../engine/model.ts';

/** Of two workers with two batches each, the last in the row waits for three; and not all take the same time. */
const BATCHES = 4;
const MIN_MS = 25;
const MAX_MS = 100;
/** Of the newest batch in the mean. */
const WEIGHT = 1 / 8;

/** Pure: who calls measures. */
export class LockWait {
  #meanMs = MAX_MS / BATCHES;

  get limitMs(): Millis {
    return Math.round(Math.min(MAX_MS, Math.max(MIN_MS, BATCHES * this.#meanMs)));
  }

  /** A batch came through, and took so long, with what it waited for others. */
  note(tookMs: Millis): void {
    this.#meanMs += (tookMs - this.#meanMs) * WEIGHT;
  }
}
