/**
 * Which projects have a backlog: more messages to deliver than this worker manages? Its claims show it. They bring many
 * messages where the worker is slower than the endpoint. They bring few where the endpoint is slower: it has its share of
 * attempts, and each attempt that ends makes room for one.
 */
import { type BacklogKey, parseBacklogKey } from '../lanes/backlog-key.ts';
import type { Claimed, Millis, ProjectId } from '../model.ts';

/** A claim that brings so many shows a backlog. */
export const LARGE_CLAIM = 32;
/** So long a claim shows it. All of it may be delivered then, while claims bring what is of others and name the project no more. */
const LAGGING_FOR_MS = 1_000;

export class LaggingProjects {
  /** With when a claim has shown it last, as `elapsedMs` counts. */
  readonly #largeClaimAtMs = new Map<ProjectId, Millis>();
  #onCaughtUp: (projectId: ProjectId) => void = () => {};

  /** Whether messages of the project wait because of this worker. */
  has(projectId: ProjectId, elapsedMs: Millis): boolean {
    const shownAtMs = this.#largeClaimAtMs.get(projectId);
    return shownAtMs !== undefined && elapsedMs < shownAtMs + LAGGING_FOR_MS;
  }

  /** From now on calls `listener` when a project has no backlog any more. */
  listen(listener: (projectId: ProjectId) => void): void {
    this.#onCaughtUp = listener;
  }

  /** A claim has brought `claimed`, from `backlogs` or from the due index. */
  noteClaim(backlogs: readonly BacklogKey[], claimed: readonly Claimed[], elapsedMs: Millis): void {
    const counts = new Map<ProjectId, number>();
    for (const backlog of backlogs) counts.set(parseBacklogKey(backlog).projectId, 0);
    for (const { message } of claimed) counts.set(message.projectId, (counts.get(message.projectId) ?? 0) + 1);
    for (const [projectId, count] of counts) {
      if (count >= LARGE_CLAIM) this.#largeClaimAtMs.set(projectId, elapsedMs);
      else this.#end(projectId);
    }
  }

  /** There is nothing to claim, or no room for it. */
  noteIdle(): void {
    for (const projectId of this.#largeClaimAtMs.keys()) this.#end(projectId);
  }

  #end(projectId: ProjectId): void {
    if (this.#largeClaimAtMs.delete(projectId)) this.#onCaughtUp(projectId);
  }
}
