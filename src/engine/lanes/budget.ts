/**
 * A fixed number of slots and bytes, shared among projects by the dynamic threshold of shared-memory switches: a project
 * may take more while it uses less than seven times the free amount. So a single project gets seven eighths. A second
 * project finds an eighth free and gets more as attempts end, until both projects have seven fifteenths.
 */
import type { ProjectCapacities } from '../dispatch/claims.ts';
import type { ProjectId } from '../model.ts';

const TIMES_FREE = 7;

export interface Size {
  count: number;
  bytes: number;
}

const NONE: Readonly<Size> = { count: 0, bytes: 0 };

/** The part of a budget that is reserved for a claim until the result of the claim is known. */
export interface BudgetOffer extends ProjectCapacities {
  slots: number;
  bytes: number;
}

export class Budget {
  readonly #max: Size;
  readonly #used: Size = { ...NONE };
  readonly #usedByProject = new Map<ProjectId, Size>();
  readonly #offers = new Set<BudgetOffer>();
  #bytesReserved = 0;

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

  /** The free bytes; zero or negative when the bytes are used up. */
  get freeBytes(): number {
    let free = this.#max.bytes - this.#used.bytes - this.#bytesReserved;
    for (const { bytes } of this.#offers) free -= bytes;
    return free;
  }

  get isExceeded(): boolean {
    return this.#used.count > this.#max.count;
  }

  /** Projects that use a part of the budget. */
  get projects(): Iterable<ProjectId> {
    return this.#usedByProject.keys();
  }

  countOf(projectId: ProjectId): number {
    return this.#usedByProject.get(projectId)?.count ?? 0;
  }

  /**
   * How much more `projectId` may use after `ended`, a part of its usage, has ended. Never negative. If no bytes are
   * free, the project gets no slots either, but one message always fits when nothing else is in flight.
   */
  capacityOf(projectId: ProjectId, ended: Readonly<Size> = NONE): Size {
    const used = this.#usedByProject.get(projectId) ?? NONE;
    const isEmpty = this.#used.count === ended.count && this.#used.bytes === ended.bytes;
    const count = capacityBelowThreshold(
      this.freeSlots + ended.count,
      used.count - ended.count + this.#offeredTo(projectId),
    );
    const bytes = isEmpty
      ? this.#max.bytes
      : capacityBelowThreshold(this.freeBytes + ended.bytes, used.bytes - ended.bytes);
    return { count: bytes === 0 ? 0 : count, bytes };
  }

  /** Adds to the usage of the project. Negative numbers reduce the usage. */
  use(projectId: ProjectId, count: number, bytes: number): void {
    if (count === 0 && bytes === 0) return;
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

  /**
   * Reserves up to `bytesMax` free bytes for a message that comes without a claim. Returns how many bytes it has
   * reserved; `returnBytes` frees them.
   */
  reserveBytes(bytesMax: number): number {
    const bytes = Math.max(0, Math.min(bytesMax, this.freeBytes));
    this.#bytesReserved += bytes;
    return bytes;
  }

  returnBytes(bytes: number): void {
    this.#bytesReserved -= bytes;
  }

  /** Reserves half of the free slots and bytes for a claim of up to `slotsMax` messages. `endOffer` frees them. */
  offer(slotsMax: number): BudgetOffer {
    const capacityByProject: Record<ProjectId, number> = {};
    for (const projectId of this.#usedByProject.keys())
      capacityByProject[projectId] = half(this.capacityOf(projectId).count);
    const slots = Math.min(slotsMax, half(this.freeSlots));
    const defaultCapacity = half(capacityBelowThreshold(this.freeSlots, 0));
    const offer = { slots, bytes: half(this.freeBytes), capacityByProject, defaultCapacity };
    this.#offers.add(offer);
    return offer;
  }

  endOffer(offer: BudgetOffer): void {
    this.#offers.delete(offer);
  }

  #offeredTo(projectId: ProjectId): number {
    let offered = 0;
    for (const { slots, capacityByProject, defaultCapacity } of this.#offers) {
      offered += Math.min(slots, capacityByProject[projectId] ?? defaultCapacity);
    }
    return offered;
  }
}

/**
 * How much of `free` a project that uses `used` may take, so that it uses at most seven times the amount that is then
 * left.
 */
export function capacityBelowThreshold(free: number, used: number): number {
  return Math.max(0, Math.ceil((TIMES_FREE * free - used) / (TIMES_FREE + 1)));
}

/** Half of `amount`, rounded up so that the last unit is offered, too. */
export function half(amount: number): number {
  return Math.max(0, Math.ceil(amount / 2));
}
