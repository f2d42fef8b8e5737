/** Is what clients publish saved, or refused? */
import type { Clock } from '../ports.ts';
import { StoreUnavailable } from '../store-errors.ts';

/** Publishes saved one after the other that prove that the trouble is over. A full disk now and then has room for one. */
const PROOF = 10;
/** Without publishes nothing can prove it: a balancer that sends none any more is to try again, soon after a failover. */
const REMEMBERED_MS = 3_000;

export class IntakeHealth {
  readonly #clock: Pick<Clock, 'elapsedMs'>;
  #refusedAtMs = -Infinity;
  #savedSince = PROOF;

  constructor(clock: Pick<Clock, 'elapsedMs'>) {
    this.#clock = clock;
  }

  noteSaved(): void {
    this.#savedSince += 1;
  }

  /** Why a publish was not saved: only the store's own trouble counts. */
  noteFailure(error: unknown): void {
    if (!(error instanceof StoreUnavailable)) return;
    this.#refusedAtMs = this.#clock.elapsedMs;
    this.#savedSince = 0;
  }

  /** Throws `StoreUnavailable` while the store refuses what is published. */
  check(): void {
    if (this.#savedSince >= PROOF || this.#clock.elapsedMs > this.#refusedAtMs + REMEMBERED_MS) return;
    throw new StoreUnavailable('what was published last could not be saved');
  }
}
