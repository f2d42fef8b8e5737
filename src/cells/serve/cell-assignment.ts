/**
 * Chooses the cells that a worker serves. With few cells, all workers serve all cells. With many cells, rendezvous
 * hashing assigns workers to each cell: every cell ranks the live workers in its own order, and the first workers in this
 * order serve the cell. When a worker leaves, its cells go to other workers, and the other cells keep their workers.
 *
 * Workers need not agree on the assignment. Claims are in the database, so two workers that both serve a cell share its
 * work, and a worker that serves a cell a moment too long does no harm.
 */
import type { CellId, WorkerId } from '../../engine/model.ts';

/** A worker can serve this many cells at no noticeable cost. */
export const CELLS_PER_WORKER = 64;
/**
 * The minimum of workers for each cell: when one worker is lost, another worker already has the cell open or polls the
 * cell.
 */
const WORKERS_PER_CELL_MIN = 2;

/** The number of workers that serve each cell. */
export function workersPerCell(cells: number, workers: number, cellsPerWorker = CELLS_PER_WORKER): number {
  return Math.min(workers, Math.max(WORKERS_PER_CELL_MIN, Math.ceil((cellsPerWorker * workers) / cells)));
}

/** Returns the cells that `worker` serves. `others`: the other live workers. */
export function assignedCells(
  cells: readonly CellId[],
  { worker, others }: { worker: WorkerId; others: readonly WorkerId[] },
  cellsPerWorker?: number,
): Set<CellId> {
  const workers = [worker, ...others];
  const count = workersPerCell(cells.length, workers.length, cellsPerWorker);
  if (count === workers.length) return new Set(cells);
  const seeds = workers.map(seedOf);
  return new Set(
    cells.filter((cellId) => {
      const [own = 0, ...their] = seeds.map((seed) => mixBits(seed ^ Math.imul(cellId, GOLDEN)));
      return their.filter((weight) => weight > own).length < count;
    }),
  );
}

/** 2^32 divided by the golden ratio: neighbouring numbers become far apart. */
const GOLDEN = 0x9e3779b1;

/** FNV-1a hash of the worker's id. */
function seedOf(worker: WorkerId): number {
  let hash = 0x811c9dc5;
  for (const unit of worker) hash = Math.imul(hash ^ (unit.codePointAt(0) ?? 0), 0x01000193);
  return hash;
}

/** Each bit of the result depends on each bit of `value` (the last steps of MurmurHash3). */
function mixBits(value: number): number {
  let bits = value;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
