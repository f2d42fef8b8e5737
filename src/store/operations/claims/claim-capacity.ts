/**
 * How many messages a claim may still take for each endpoint backlog and project, from the capacities that the worker
 * sent.
 */

import type { ClaimRequest, ProjectCapacities } from '../../../engine/dispatch/claims.ts';
import { type BacklogKey, parseBacklogKey } from '../../../engine/lanes/backlog-key.ts';

export class ClaimCapacity {
  readonly #request: ClaimRequest;
  readonly #healthy: ReadonlySet<BacklogKey>;
  /** The remaining capacity, by the name of the limit. */
  readonly #left = new Map<string, number>();

  constructor(request: ClaimRequest) {
    this.#request = request;
    this.#healthy = new Set(request.unknown?.healthy);
  }

  /** How many more messages of `backlog` may be taken. */
  of(backlog: BacklogKey): number {
    return Math.max(
      0,
      Math.min(...this.#limitsOf(backlog).map(([name, capacity]) => this.#left.get(name) ?? capacity)),
    );
  }

  take(backlog: BacklogKey): void {
    for (const [name, capacity] of this.#limitsOf(backlog))
      this.#left.set(name, (this.#left.get(name) ?? capacity) - 1);
  }

  /** Each limit that applies to `backlog`, with its initial capacity. */
  #limitsOf(backlog: BacklogKey): [name: string, capacity: number][] {
    const { capacityByOrigin, defaultCapacity, capacityByBacklog, projects, unknown } = this.#request;
    const { projectId, origin } = parseBacklogKey(backlog);
    const limits: [string, number][] = [
      [origin, Object.hasOwn(capacityByOrigin, origin) ? (capacityByOrigin[origin] ?? 0) : defaultCapacity],
    ];
    const capacity = capacityByBacklog?.[backlog];
    if (capacity !== undefined) limits.push([backlog, capacity]);
    if (projects) limits.push([`project ${projectId}`, capacityIn(projects, projectId)]);
    if (!unknown || this.#healthy.has(backlog)) return limits;
    return [...limits, ['unknown', unknown.slots], [`unknown of ${projectId}`, capacityIn(unknown, projectId)]];
  }
}

function capacityIn({ capacityByProject, defaultCapacity }: ProjectCapacities, projectId: number): number {
  return capacityByProject[projectId] ?? defaultCapacity;
}
