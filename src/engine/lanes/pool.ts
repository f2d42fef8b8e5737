/**
 * How are slots shared among projects? Each may start another attempt while it has fewer than seven times the slots
 * that are free (the dynamic threshold of shared-memory switches). So a project alone gets seven eighths of all slots.
 * A second one finds an eighth of them free and gets more as attempts end, until both have seven fifteenths. The same
 * rule shares body bytes.
 */
import type { ProjectRooms } from '../messages/claims.ts';
import type { ProjectId } from '../model.ts';

const TIMES_FREE = 7;

export interface Size {
  count: number;
  bytes: number;
}

const NONE: Readonly<Size> = { count: 0, bytes: 0 };

/** What is set aside for one claim until it is answered. */
export interface PoolOffer extends ProjectRooms {
  slots: number;
  bytes: number;
}

export class Pool {
  readonly #max: Size;
  readonly #used: Size = { ...NONE };
  readonly #usedByProject = new Map<ProjectId, Size>();
  readonly #offers = new Set<PoolOffer>();

  constructor(max: Size) {
    this.#max = max;
  }

  get count(): number {
    return this.#used.count;
  }

  get freeSlots(): number {
    let free = this.#max.count - this.#used.count;
    for (const { slots } of this.#offers) free -= slots;
    return free;
  }

  /** Not positive when the bytes are used up. */
  get freeBytes(): number {
    let free = this.#max.bytes - this.#used.bytes;
    for (const { bytes } of this.#offers) free -= bytes;
    return free;
  }

  /** Whether more is used than there is. */
  get isExceeded(): boolean {
    return this.#used.count > this.#max.count;
  }

  get projects(): Iterable<ProjectId> {
    return this.#usedByProject.keys();
  }

  countOf(projectId: ProjectId): number {
    return this.#usedByProject.get(projectId)?.count ?? 0;
  }

  /**
   * How much more `projectId` may have in flight once `ended`, which is its own, is over. Never negative. Without free
   * bytes there are no slots either, but one message always fits when nothing else is in flight.
   */
  roomOf(projectId: ProjectId, ended: Readonly<Size> = NONE): Size {
    const used = this.#usedByProject.get(projectId) ?? NONE;
    const isEmpty = this.#used.count === ended.count && this.#used.bytes === ended.bytes;
    const count = untilThreshold(this.freeSlots + ended.count, used.count - ended.count + this.#offeredTo(projectId));
    const bytes = isEmpty ? this.#max.bytes : untilThreshold(this.freeBytes + ended.bytes, used.bytes - ended.bytes);
    return { count: bytes === 0 ? 0 : count, bytes };
  }

  enter(projectId: ProjectId, { count, bytes }: Readonly<Size>): void {
    let used = this.#usedByProject.get(projectId);
    if (!used) {
      used = { ...NONE };
      this.#usedByProject.set(projectId, used);
    }
    for (const size of [this.#used, used]) {
      size.count += count;
      size.bytes += bytes;
    }
    if (used.count === 0 && used.bytes === 0) this.#usedByProject.delete(projectId);
  }

  leave(projectId: ProjectId, { count, bytes }: Readonly<Size>): void {
    this.enter(projectId, { count: -count, bytes: -bytes });
  }

  /** Sets half of what is free aside, for up to `slotsMax` messages. `endOffer` gives it back. */
  offer(slotsMax: number): PoolOffer {
    const roomByProject: Record<ProjectId, number> = {};
    for (const projectId of this.#usedByProject.keys()) roomByProject[projectId] = half(this.roomOf(projectId).count);
    const slots = Math.min(slotsMax, half(this.freeSlots));
    const defaultRoom = half(untilThreshold(this.freeSlots, 0));
    const offer = { slots, bytes: half(this.freeBytes), roomByProject, defaultRoom };
    this.#offers.add(offer);
    return offer;
  }

  endOffer(offer: PoolOffer): void {
    this.#offers.delete(offer);
  }

  #offeredTo(projectId: ProjectId): number {
    let offered = 0;
    for (const { slots, roomByProject, defaultRoom } of this.#offers) {
      offered += Math.min(slots, roomByProject[projectId] ?? defaultRoom);
    }
    return offered;
  }
}

/** How much a project that uses `used` may take of `free`, until it has seven times what is then left free. */
export function untilThreshold(free: number, used: number): number {
  return Math.max(0, Math.ceil((TIMES_FREE * free - used) / (TIMES_FREE + 1)));
}

/** Rounded up, so that the last one is offered too. */
export function half(amount: number): number {
  return Math.max(0, Math.ceil(amount / 2));
}
