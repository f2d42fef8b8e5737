/**
 * Which projects have a backlog: more messages to deliver than this worker manages? Its claims show it. They bring many
 * messages where the worker is slower than the endpoint. They bring few where the endpoint is slower: it has its share of
 * attempts, and each attempt that ends makes room for one.
 */
import { type OriginLine, readLine } from '../lanes/origin-line.ts';
import type { Claimed, ProjectId } from '../model.ts';

/** A claim that brings so many shows a backlog. */
export const CLAIM_MANY = 32;

export class Backlog {
  readonly #behind = new Set<ProjectId>();
  #onCaughtUp: (projectId: ProjectId) => void = () => {};

  /** Whether messages of the project wait because of this worker. */
  has(projectId: ProjectId): boolean {
    return this.#behind.has(projectId);
  }

  /** From now on calls `listener` when a project has no backlog any more. */
  listen(listener: (projectId: ProjectId) => void): void {
    this.#onCaughtUp = listener;
  }

  /** A claim has brought `claimed`, from `lines` or from the due index. */
  noteClaim(lines: readonly OriginLine[], claimed: readonly Claimed[]): void {
    const counts = new Map<ProjectId, number>();
    for (const line of lines) counts.set(readLine(line).projectId, 0);
    for (const { message } of claimed) counts.set(message.projectId, (counts.get(message.projectId) ?? 0) + 1);
    for (const [projectId, count] of counts) {
      if (count >= CLAIM_MANY) this.#behind.add(projectId);
      else this.#end(projectId);
    }
  }

  /** There is nothing to claim, or no room for it. */
  noteIdle(): void {
    for (const projectId of this.#behind) this.#end(projectId);
  }

  #end(projectId: ProjectId): void {
    if (this.#behind.delete(projectId)) this.#onCaughtUp(projectId);
  }
}
