/**
 * Chooses the cells that a worker serves. With few cells all workers serve all of them. With many, each is served by those of
 * the live workers that come first in an order of its own (rendezvous hashing): when a worker leaves, its cells go to
 * others, and all others stay where they are.
 *
 * Workers need not agree. Claims are in the database, so two that take a cell for theirs share its work, and one that
 * serves a cell a moment too long does no harm.
 */
import type { CellId, WorkerId } from '../../engine/model.ts';

/** As many cells a worker serves without noticing what each costs. */
export const CELLS_OF_WORKER = 64;
/** Of one cell: when one of them is lost, the other one has it open already, or looks at it all the time. */
const WORKERS_MIN = 2;

/** How many of the workers serve each cell. */
export function workersOfEach(cells: number, workers: number, cellsOfWorker = CELLS_OF_WORKER): number {
  return Math.min(workers, Math.max(WORKERS_MIN, Math.ceil((cellsOfWorker * workers) / cells)));
}

/** Those of `cells` that `worker` serves beside the `others` that live. */
export function cellsServed(
  cells: readonly CellId[],
  { worker, others }: { worker: WorkerId; others: readonly WorkerId[] },
  cellsOfWorker?: number,
): Set<CellId> {
  const workers = [worker, ...others];
  const count = workersOfEach(cells.length, workers.length, cellsOfWorker);
  if (count === workers.length) return new Set(cells);
  const seeds = workers.map(seedOf);
  return new Set(
    cells.filter((cellId) => {
      const [own = 0, ...their] = seeds.map((seed) => mixed(seed ^ Math.imul(cellId, GOLDEN)));
      return their.filter((weight) => weight > own).length < count;
    }),
  );
}

/** 2^32 divided by the golden ratio: neighbouring numbers become far apart. */
const GOLDEN = 0x9e3779b1;

/** FNV-1a. */
function seedOf(worker: WorkerId): number {
  let hash = 0x811c9dc5;
  for (const unit of worker) hash = Math.imul(hash ^ (unit.codePointAt(0) ?? 0), 0x01000193);
  return hash;
}

/** Each bit of the answer depends on each of `value` (the last steps of MurmurHash3). */
function mixed(value: number): number {
  let bits = value;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
