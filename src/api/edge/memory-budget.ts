/**
 * Bounds the memory of request bodies or responses, for any number of clients (P10). Projects share the memory like
 * slots (`src/engine/lanes/budget.ts`): a project alone gets at most seven eighths, so that the next project finds
 * capacity (P9).
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

  /** Whether a holder of `bytesReserved` may reserve `bytes` more. Always true for the only holder. */
  hasCapacity(projectId: ProjectId, bytes: number, bytesReserved = 0): boolean {
    if (this.#bytesUsed === bytesReserved) return true;
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
