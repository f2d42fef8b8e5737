/** How many messages may a claim still take for each origin, backlog and project? The worker has computed the rooms at the start. */

import type { ClaimRequest, ProjectCapacities } from '../../../engine/dispatch/claims.ts';
import { type BacklogKey, parseBacklogKey } from '../../../engine/lanes/backlog-key.ts';

export class ClaimRooms {
  readonly #request: ClaimRequest;
  readonly #healthy: ReadonlySet<BacklogKey>;
  /** The room left, by the name of the limit. */
  readonly #left = new Map<string, number>();

  constructor(request: ClaimRequest) {
    this.#request = request;
    this.#healthy = new Set(request.unknown?.healthy);
  }

  /** How many more messages of `backlog` may be taken. */
  of(backlog: BacklogKey): number {
    return Math.max(0, Math.min(...this.#roomsOf(backlog).map(([name, room]) => this.#left.get(name) ?? room)));
  }

  take(backlog: BacklogKey): void {
    for (const [name, room] of this.#roomsOf(backlog)) this.#left.set(name, (this.#left.get(name) ?? room) - 1);
  }

  /** Each limit that applies to `backlog`, with its room at the start. */
  #roomsOf(backlog: BacklogKey): [name: string, room: number][] {
    const { capacityByOrigin, defaultCapacity, capacityByBacklog, projects, unknown } = this.#request;
    const { projectId, origin } = parseBacklogKey(backlog);
    const rooms: [string, number][] = [
      [origin, Object.hasOwn(capacityByOrigin, origin) ? (capacityByOrigin[origin] ?? 0) : defaultCapacity],
    ];
    const room = capacityByBacklog?.[backlog];
    if (room !== undefined) rooms.push([backlog, room]);
    if (projects) rooms.push([`project ${projectId}`, roomIn(projects, projectId)]);
    if (!unknown || this.#healthy.has(backlog)) return rooms;
    return [...rooms, ['unknown', unknown.slots], [`unknown of ${projectId}`, roomIn(unknown, projectId)]];
  }
}

function roomIn({ capacityByProject, defaultCapacity }: ProjectCapacities, projectId: number): number {
  return capacityByProject[projectId] ?? defaultCapacity;
}
