/** How many messages may a claim still take for each origin, line and project? The worker has computed the rooms at the start. */

import type { ClaimRequest, ProjectRooms } from '../../../engine/dispatch/claims.ts';
import { type OriginLine, readLine } from '../../../engine/lanes/origin-line.ts';

export class ClaimRooms {
  readonly #request: ClaimRequest;
  readonly #proven: ReadonlySet<OriginLine>;
  /** The room left, by the name of the limit. */
  readonly #left = new Map<string, number>();

  constructor(request: ClaimRequest) {
    this.#request = request;
    this.#proven = new Set(request.unproven?.proven);
  }

  /** How many more messages of `line` may be taken. */
  of(line: OriginLine): number {
    return Math.max(0, Math.min(...this.#roomsOf(line).map(([name, room]) => this.#left.get(name) ?? room)));
  }

  take(line: OriginLine): void {
    for (const [name, room] of this.#roomsOf(line)) this.#left.set(name, (this.#left.get(name) ?? room) - 1);
  }

  /** Each limit that applies to `line`, with its room at the start. */
  #roomsOf(line: OriginLine): [name: string, room: number][] {
    const { roomByOrigin, defaultRoom, roomByLine, projects, unproven } = this.#request;
    const { projectId, origin } = readLine(line);
    const rooms: [string, number][] = [
      [origin, Object.hasOwn(roomByOrigin, origin) ? (roomByOrigin[origin] ?? 0) : defaultRoom],
    ];
    const room = roomByLine?.[line];
    if (room !== undefined) rooms.push([line, room]);
    if (projects) rooms.push([`project ${projectId}`, roomIn(projects, projectId)]);
    if (!unproven || this.#proven.has(line)) return rooms;
    return [...rooms, ['unproven', unproven.slots], [`unproven of ${projectId}`, roomIn(unproven, projectId)]];
  }
}

function roomIn({ roomByProject, defaultRoom }: ProjectRooms, projectId: number): number {
  return roomByProject[projectId] ?? defaultRoom;
}
