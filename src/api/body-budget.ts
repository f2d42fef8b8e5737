/**
 * Counts the body bytes in memory over all requests, so that memory is bounded for any number of clients (P10). Projects
 * share it as they share slots (`src/engine/lanes/pool.ts`): one alone gets seven eighths, so others find room (P9).
 */
import { untilThreshold } from '../engine/lanes/pool.ts';
import type { ProjectId } from '../engine/model.ts';

export class BodyBudget {
  readonly #bytesMax: number;
  readonly #bytesByProject = new Map<ProjectId, number>();
  #bytesUsed = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytesUsed(): number {
    return this.#bytesUsed;
  }

  /** Whether a body of the project that holds `bytesHeld` may take `bytes` more. One body alone always may. */
  hasRoom(projectId: ProjectId, bytes: number, bytesHeld = 0): boolean {
    if (this.#bytesUsed === bytesHeld) return true;
    const ofProject = this.#bytesByProject.get(projectId) ?? 0;
    return bytes <= untilThreshold(this.#bytesMax - this.#bytesUsed, ofProject);
  }

  take(projectId: ProjectId, bytes: number): void {
    const ofProject = (this.#bytesByProject.get(projectId) ?? 0) + bytes;
    if (ofProject === 0) this.#bytesByProject.delete(projectId);
    else this.#bytesByProject.set(projectId, ofProject);
    this.#bytesUsed += bytes;
  }

  giveBack(projectId: ProjectId, bytes: number): void {
    this.take(projectId, -bytes);
  }
}
