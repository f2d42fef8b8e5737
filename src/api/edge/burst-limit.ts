/** Limits how many requests a project may make in a second (contract M 20.3). Publishing is not counted. */
import type { Millis, ProjectId } from '../../engine/model.ts';
import { burstLimitReached } from '../../protocol/rate-limits.ts';

interface Window {
  second: number;
  requests: number;
}

/**
 * Counts in memory, with one small entry per calling project. A window lasts one second, so a restart loses little.
 */
export class BurstLimit {
  readonly #requestsMax: number;
  readonly #windowByProject = new Map<ProjectId, Window>();

  /** `requestsMax`: per second; 0: no limit. */
  constructor(requestsMax: number) {
    this.#requestsMax = requestsMax;
  }

  /** Counts one request. Throws `RateLimited` (429) if the project has used up the requests of this second. */
  take(projectId: ProjectId, nowMs: Millis): void {
    if (this.#requestsMax === 0) return;
    const second = Math.floor(nowMs / 1000);
    const window = this.#windowByProject.get(projectId);
    if (window?.second !== second) {
      this.#windowByProject.set(projectId, { second, requests: 1 });
      return;
    }
    if (window.requests >= this.#requestsMax) throw burstLimitReached(this.#requestsMax, nowMs);
    window.requests += 1;
  }
}
