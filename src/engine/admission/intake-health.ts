/** Is what clients publish saved, or refused? */
import type { Millis } from '../model.ts';
import type { Clock } from '../ports.ts';
import { StoreUnavailable } from '../store-errors.ts';

/**
 * After so many publishes saved in a row the trouble is over. One proves nothing: a full disk sometimes has room for
 * one.
 */
const PROOF = 10;
/**
 * After this time a refusal is forgotten: a load balancer that sends no more publishes must try again soon after a
 * failover.
 */
const REMEMBERED_MS = 3_000;

export class IntakeHealth {
  readonly #clock: Pick<Clock, 'elapsedMs'>;
  #refused: { atMs: Millis; error: StoreUnavailable } | undefined;
  #savedSince = PROOF;

  constructor(clock: Pick<Clock, 'elapsedMs'>) {
    this.#clock = clock;
  }

  noteSaved(): void {
    this.#savedSince += 1;
  }

  /** `error`: why a publish was not saved. It counts only when the store could not save it. */
  noteFailure(error: unknown): void {
    if (!(error instanceof StoreUnavailable)) return;
    this.#refused = { atMs: this.#clock.elapsedMs, error };
    this.#savedSince = 0;
  }

  /** Throws `StoreUnavailable` while the store refuses what is published. */
  check(): void {
    if (!this.#refused || this.#savedSince >= PROOF || this.#clock.elapsedMs > this.#refused.atMs + REMEMBERED_MS)
      return;
    const { reason, detail } = this.#refused.error;
    throw new StoreUnavailable(`what was published last could not be saved: ${reason}`, { detail });
  }
}
