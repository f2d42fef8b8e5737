/**
 * Of which projects has this worker more to deliver than it comes to? Told by what its claims bring: many messages, where an
 * endpoint is no slower than the worker; few, where the endpoint has its share of attempts and each that ends makes room for one.
 */
import { type OriginLine, readLine } from '../lanes/origin-line.ts';
import type { Claimed, ProjectId } from '../model.ts';

/** A claim that brings so many shows a backlog. */
export const CLAIM_MANY = 32;

export class Backlog {
  readonly #behind = new Set<ProjectId>();
  #onCaughtUp: (projectId: ProjectId) => void = () => {};

  /** Whether what the project has published waits for this worker. */
  has(projectId: ProjectId): boolean {
    return this.#behind.has(projectId);
  }

  /** From now on `listener` is told when that is over. */
  listen(listener: (projectId: ProjectId) => void): void {
    this.#onCaughtUp = listener;
  }

  /** A claim has brought `claimed`, of these lines or of what was due. */
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
