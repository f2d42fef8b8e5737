/** May this worker still own messages? Only while no other worker can have expired it. */

import type { Millis, ProjectId } from '../model.ts';
import type { Clock } from '../ports.ts';
import type { ProjectFence } from './project-fence.ts';

export interface Fence {
  /** While the fence is closed, the worker begins no attempt, claims nothing and accepts nothing as claimed. */
  readonly isClosed: boolean;
  /** Whether it may begin the attempt of a claim that it asked for at `askedAtMs`, as `elapsedMs` counts. */
  mayBegin(projectId: ProjectId, askedAtMs: Millis): boolean;
}

/** For the only worker of a store: no other can expire it. */
export const ALWAYS_OPEN: Fence = { isClosed: false, mayBegin: () => true };

/** Share of the timeout after which a worker without an answered heartbeat closes its fence and ends its attempts. */
const FENCE_SHARE = 0.8;

/** For how long after the beginning of an answered heartbeat a worker may own messages. */
export function fenceLimitMs(timeoutMs: Millis): Millis {
  return timeoutMs * FENCE_SHARE;
}

/**
 * Closed until the first heartbeat, and whenever the last answered heartbeat began too long ago. The time is compared at
 * each use, not by a timer alone: a process that was suspended must not start an attempt before it has checked.
 */
export class HeartbeatFence implements Fence {
  readonly #clock: Pick<Clock, 'elapsedMs'>;
  readonly #limitMs: Millis;
  readonly #projects: ProjectFence | undefined;
  #begunAtMs = -Infinity;

  /** `projects`: they may move to other stores. */
  constructor(clock: Pick<Clock, 'elapsedMs'>, limitMs: Millis, projects?: ProjectFence) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#projects = projects;
  }

  get isClosed(): boolean {
    return this.leftMs < 0;
  }

  /** Time until it closes by itself. */
  get leftMs(): Millis {
    return this.#begunAtMs + this.#limitMs - this.#clock.elapsedMs;
  }

  /** A heartbeat that began at `begunAtMs`, as `elapsedMs` counts, was answered: the database noted it then or later. */
  noteHeartbeat(begunAtMs: Millis): void {
    this.#begunAtMs = Math.max(this.#begunAtMs, begunAtMs);
  }

  mayBegin(projectId: ProjectId, askedAtMs: Millis): boolean {
    if (this.isClosed) return false;
    return this.#projects?.mayBegin(projectId, Math.min(askedAtMs, this.#begunAtMs), this) ?? true;
  }
}
