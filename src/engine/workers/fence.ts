/** May this worker still own messages? Only while no other worker can have expired it. */
import type { Millis } from '../model.ts';
import type { Clock } from '../ports.ts';

export interface Fence {
  /** While the fence is closed, the worker begins no attempt, claims nothing and accepts nothing as claimed. */
  readonly isClosed: boolean;
}

/** For the only worker of a store: no other can expire it. */
export const ALWAYS_OPEN: Fence = { isClosed: false };

/**
 * Closed until the first heartbeat, and whenever the last answered heartbeat began too long ago. The time is compared at
 * each use, not by a timer alone: a process that was stopped and goes on must not begin an attempt before it knows.
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

  /** A heartbeat that began at `begunAtMs`, as `elapsedMs` counts, was answered: the database noted it then or later. */
  noteHeartbeat(begunAtMs: Millis): void {
    this.#openUntilMs = Math.max(this.#openUntilMs, begunAtMs + this.#limitMs);
  }
}
