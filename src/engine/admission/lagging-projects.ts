/**
 * The projects whose deliveries lag: more of their messages are due than this worker delivers. A large claim shows such a
 * lag. Claims return many messages if the worker is slower than the endpoint. They return few messages if the endpoint is
 * slower: all attempts to this endpoint are in flight then, and each attempt that ends makes capacity for one message.
 */
import { type BacklogKey, parseBacklogKey } from '../lanes/backlog-key.ts';
import type { Claimed, Millis, ProjectId } from '../model.ts';

/** A project lags if one claim returns at least this many messages of the project. */
export const LARGE_CLAIM = 32;
/**
 * How long a large claim counts as a lag. After this time, the messages of the claim may have been delivered, and newer
 * claims may have returned only messages of other projects.
 */
const LAGGING_FOR_MS = 1_000;

export class LaggingProjects {
  /** When the latest large claim of each project returned, as elapsed time. */
  readonly #largeClaimAtMs = new Map<ProjectId, Millis>();
  #onCaughtUp: (projectId: ProjectId) => void = () => {};

  /** Whether the project lags: messages of the project wait because this worker is too slow. */
  has(projectId: ProjectId, elapsedMs: Millis): boolean {
    const shownAtMs = this.#largeClaimAtMs.get(projectId);
    return shownAtMs !== undefined && elapsedMs < shownAtMs + LAGGING_FOR_MS;
  }

  /** Calls `listener` when a project no longer lags. */
  listen(listener: (projectId: ProjectId) => void): void {
    this.#onCaughtUp = listener;
  }

  /** Notes that a claim has returned `claimed`, from `backlogs` or from the due index. */
  noteClaim(backlogs: readonly BacklogKey[], claimed: readonly Claimed[], elapsedMs: Millis): void {
    const counts = new Map<ProjectId, number>();
    for (const backlog of backlogs) counts.set(parseBacklogKey(backlog).projectId, 0);
    for (const { message } of claimed) counts.set(message.projectId, (counts.get(message.projectId) ?? 0) + 1);
    for (const [projectId, count] of counts) {
      if (count >= LARGE_CLAIM) this.#largeClaimAtMs.set(projectId, elapsedMs);
      else this.#end(projectId);
    }
  }

  /** Notes that no message was due, or that there was no capacity for a claim. */
  noteIdle(): void {
    for (const projectId of this.#largeClaimAtMs.keys()) this.#end(projectId);
  }

  #end(projectId: ProjectId): void {
    if (this.#largeClaimAtMs.delete(projectId)) this.#onCaughtUp(projectId);
  }
}
