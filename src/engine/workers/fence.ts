/** May this worker still own messages? Only while no other can have declared it dead. */
import type { Millis } from '../model.ts';
import type { Clock } from '../ports.ts';

export interface Fence {
  /** While it is, the worker begins no attempt, claims nothing and accepts nothing as claimed. */
  readonly isClosed: boolean;
}

/** Of a worker that has the store for itself: nobody can declare it dead. */
export const ALWAYS_OPEN: Fence = { isClosed: false };

/**
 * Closed until the first heartbeat, and whenever the last heartbeat that was heard of began too long ago. The time is compared when
 * it matters, not by a timer alone: a process that was stopped and goes on must not begin an attempt before it knows.
 */
export class HeartbeatFence implements Fence {
  readonly #clock: Pick<Clock, 'elapsedMs'>;
  readonly #limitMs: Millis;
  #openUntilMs = -Infinity;

  constructor(clock: Pick<Clock, 'elapsedMs'>, limitMs: Millis) {
    this.#clock = clock;
    this.#limitMs = limitMs;
  }

  get isClosed(): boolean {
    return this.leftMs < 0;
  }

  /** Time until it closes by itself. */
  get leftMs(): Millis {
    return this.#openUntilMs - this.#clock.elapsedMs;
  }

  /** A heartbeat was answered that began at `begunAtMs`, as `elapsedMs` counts: the database noted it then or later. */
  noteHeartbeat(begunAtMs: Millis): void {
    this.#openUntilMs = Math.max(this.#openUntilMs, begunAtMs + this.#limitMs);
  }
}
