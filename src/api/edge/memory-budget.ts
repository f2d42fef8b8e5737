/**
 * Counts the bytes that bodies or answers have in memory, so that it is bounded for any number of clients (P10). Projects
 * share it as they share slots (`src/engine/lanes/budget.ts`): one alone gets seven eighths, so others find room (P9).
 */
import { capacityBelowThreshold } from '../../engine/lanes/budget.ts';
import type { ProjectId } from '../../engine/model.ts';

export class MemoryBudget {
  readonly #bytesMax: number;
  readonly #bytesByProject = new Map<ProjectId, number>();
  #bytesUsed = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytesUsed(): number {
    return this.#bytesUsed;
  }

  bytesOf(projectId: ProjectId): number {
    return this.#bytesByProject.get(projectId) ?? 0;
  }

  /** Whether a body or answer of the project that holds `bytesHeld` may take `bytes` more. One alone always may. */
  hasCapacity(projectId: ProjectId, bytes: number, bytesHeld = 0): boolean {
    if (this.#bytesUsed === bytesHeld) return true;
    return bytes <= capacityBelowThreshold(this.#bytesMax - this.#bytesUsed, this.bytesOf(projectId));
  }

  reserve(projectId: ProjectId, bytes: number): void {
    const ofProject = this.bytesOf(projectId) + bytes;
    if (ofProject === 0) this.#bytesByProject.delete(projectId);
    else this.#bytesByProject.set(projectId, ofProject);
    this.#bytesUsed += bytes;
  }

  release(projectId: ProjectId, bytes: number): void {
    this.reserve(projectId, -bytes);
  }
}
