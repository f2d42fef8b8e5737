/** Two queues for work with a cost: `Fifo` in order of arrival, and `FairQueue`, which is fair among projects. */
import type { ProjectId } from '../model.ts';

/** The credit that a project gets in each round. */
const QUANTUM = 8;

/** A queue in order of arrival. */
export class Fifo<T> {
  readonly #entries: { entry: T; cost: number }[] = [];
  #cost = 0;

  get length(): number {
    return this.#entries.length;
  }

  /** The cost of all waiting entries. */
  get cost(): number {
    return this.#cost;
  }

  push(entry: T, cost: number): void {
    this.#entries.push({ entry, cost });
    this.#cost += cost;
  }

  /** Moves entries to `batch` until their cost has reached `capacity`; returns their cost. */
  takeInto(batch: T[], capacity: number): number {
    let taken = 0;
    while (taken < capacity) {
      const first = this.#entries.shift();
      if (!first) break;
      batch.push(first.entry);
      taken += first.cost;
    }
    this.#cost -= taken;
    return taken;
  }
}

/**
 * Deficit round-robin: each project gets the same cost per round, however many of its entries wait. A project whose entry
 * cost more than its credit waits until the other projects have used the same cost.
 */
export class FairQueue<T> {
  /**
   * The first project of the map is served next. `credit`: the cost that a project may still take in this round; negative
   * after an entry whose cost was larger than the credit.
   */
  readonly #projects = new Map<ProjectId, { queue: Fifo<T>; credit: number }>();
  #length = 0;
  #cost = 0;

  get length(): number {
    return this.#length;
  }

  get cost(): number {
    return this.#cost;
  }

  push(projectId: ProjectId, entry: T, cost: number): void {
    let project = this.#projects.get(projectId);
    if (!project) {
      project = { queue: new Fifo(), credit: QUANTUM };
      this.#projects.set(projectId, project);
    }
    project.queue.push(entry, cost);
    this.#length += 1;
    this.#cost += cost;
  }

  takeInto(batch: T[], capacity: number): number {
    const before = batch.length;
    let taken = 0;
    for (const [projectId, project] of this.#projects) {
      if (taken >= capacity || batch.length - before === this.#length) break;
      const { queue } = project;
      const cost = queue.takeInto(batch, Math.min(project.credit, capacity - taken));
      taken += cost;
      project.credit -= cost;
      if (queue.length > 0 && project.credit > 0) break; // the batch is full; the project continues in the next one
      // The project is moved to the end of the map, where this loop reaches it again.
      this.#projects.delete(projectId);
      if (queue.length === 0 && project.credit >= 0) continue;
      project.credit += QUANTUM;
      this.#projects.set(projectId, project);
    }
    this.#length -= batch.length - before;
    this.#cost -= taken;
    return taken;
  }
}
