/**
 * Decides whether this worker may still own messages, which is allowed only while no other worker can have expired it.
 */

import type { Millis, ProjectId } from '../model.ts';
import type { Clock } from '../ports.ts';
import type { ProjectFence } from './project-fence.ts';

export interface Fence {
  /** While the fence is closed, the worker starts no attempt, claims nothing and accepts no message as claimed. */
  readonly isClosed: boolean;
  /**
   * Whether the worker may start the attempt of a claim. `requestedAtMs`: when the worker requested the claim (elapsed
   * time).
   */
  mayStart(projectId: ProjectId, requestedAtMs: Millis): boolean;
}

/** The fence of a store's only worker, which no other worker can expire. */
export const ALWAYS_OPEN: Fence = { isClosed: false, mayStart: () => true };

/**
 * The fraction of the timeout after which a worker without a successful heartbeat closes its fence and interrupts its
 * attempts.
 */
const FENCE_FRACTION = 0.8;

/** How long a worker may own messages after it has started to send a successful heartbeat. */
export function fenceLimitMs(timeoutMs: Millis): Millis {
  return timeoutMs * FENCE_FRACTION;
}

/**
 * A fence that is closed until the first heartbeat, and whenever the last successful heartbeat started too long ago. The
 * time is compared at each use of the fence, not only by a timer, because a process that was suspended must not start an
 * attempt before the timer fires.
 */
export class HeartbeatFence implements Fence {
  readonly #clock: Pick<Clock, 'elapsedMs'>;
  readonly #limitMs: Millis;
  readonly #projects: ProjectFence | undefined;
  #startedAtMs = -Infinity;

  /** `projects`: the fence of projects that can move to other stores. */
  constructor(clock: Pick<Clock, 'elapsedMs'>, limitMs: Millis, projects?: ProjectFence) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#projects = projects;
  }

  get isClosed(): boolean {
    return this.leftMs < 0;
  }

  /** The time until the fence closes if no other heartbeat succeeds. */
  get leftMs(): Millis {
    return this.#startedAtMs + this.#limitMs - this.#clock.elapsedMs;
  }

  /**
   * Notes a successful heartbeat that started at `startedAtMs` (elapsed time); the database recorded it then or later.
   */
  noteHeartbeat(startedAtMs: Millis): void {
    this.#startedAtMs = Math.max(this.#startedAtMs, startedAtMs);
  }

  mayStart(projectId: ProjectId, requestedAtMs: Millis): boolean {
    if (this.isClosed) return false;
    return this.#projects?.mayStart(projectId, Math.min(requestedAtMs, this.#startedAtMs), this) ?? true;
  }
}
