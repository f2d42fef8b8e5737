/** How many requests may a project make in a second (contract M 20.3)? Publishing is not among them. */
import type { Millis, ProjectId } from '../engine/model.ts';
import { burstLimitReached } from '../protocol/rate-limits.ts';

interface Window {
  second: number;
  requests: number;
}

/** Counts in memory: a window lasts a second, which no restart outlasts. One small entry for each project that calls. */
export class BurstLimit {
  readonly #requestsMax: number;
  readonly #windowByProject = new Map<ProjectId, Window>();

  /** `requestsMax`: a second; 0: any number. */
  constructor(requestsMax: number) {
    this.#requestsMax = requestsMax;
  }

  /** Counts one request. Throws `RateLimited` (429) when the second has had its requests. */
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
