/**
 * Plans which projects move, so that draining cells become empty and the fullest of the other cells lose load. Pure: the
 * same loads give the same plan. After a plan was carried out, the next plan is empty.
 */
import type { CellId, ProjectId } from '../../engine/model.ts';

export interface ProjectLoad {
  projectId: ProjectId;
  /** Messages accepted per minute, on average in the last hour. */
  perMinute: number;
  unfinished: number;
  /** The estimated growth of the stored data per day. */
  bytesPerDay: number;
}

export interface LoadedCell {
  cellId: CellId;
  isDraining: boolean;
  projects: readonly ProjectLoad[];
}

export interface PlannedMove {
  projectId: ProjectId;
  fromCell: CellId;
  toCell: CellId;
  why: 'drains' | 'fullest';
}

/** A cell gives up projects only if its load is more than this multiple of the average load of a cell. */
const LOAD_LIMIT_OF_SHARE = 1.1;
/**
 * A project heavier than this fraction of the difference between the loads of two cells is not moved: after the move, the
 * target would be nearly as overloaded as the source was.
 */
const WEIGHT_MAX_OF_DIFFERENCE = 0.75;
/** The load of all cells together. Loads are whole numbers, so that the order of additions does not matter. */
const TOTAL_LOAD = 1e12;

/**
 * Plans the moves between `cells`, which must be reachable. The projects of draining cells come first, the heaviest
 * first, each to the cell with the least load; if all cells are draining, the projects stay. Then projects move from the
 * fullest cells to the emptiest, while a move helps.
 */
export function planBalance(cells: readonly LoadedCell[]): PlannedMove[] {
  const planned = plannedCellsOf(cells);
  const accepting = planned.filter(({ isDraining }) => !isDraining);
  if (accepting.length === 0) return [];
  for (const cell of planned) {
    if (!cell.isDraining) continue;
    for (const [projectId] of heaviestFirst(cell)) moveLoad(cell, emptiest(accepting), projectId);
  }
  const share = accepting.reduce((sum, { load }) => sum + load, 0) / accepting.length;
  while (moveFromFullest(accepting, share));
  return movesTo(planned, cells);
}

/** The cell for a new project. Undefined if all cells are draining. All `cells` must be reachable. */
export function emptiestOf(cells: readonly LoadedCell[]): CellId | undefined {
  const accepting = plannedCellsOf(cells).filter(({ isDraining }) => !isDraining);
  return accepting.length === 0 ? undefined : emptiest(accepting).cellId;
}

/** The share of each cell in the load of all cells, from 0 to 1. */
export function sharesOf(cells: readonly LoadedCell[]): Map<CellId, number> {
  return new Map(plannedCellsOf(cells).map(({ cellId, load }) => [cellId, load / TOTAL_LOAD]));
}

interface PlannedCell {
  cellId: CellId;
  isDraining: boolean;
  /** The projects of the cell with their weights. */
  projects: Map<ProjectId, number>;
  /** The sum of the weights. */
  load: number;
}

function plannedCellsOf(cells: readonly LoadedCell[]): PlannedCell[] {
  const all = cells.flatMap(({ projects }) => projects).toSorted((a, b) => a.projectId - b.projectId);
  const weigh = weightFunction(all);
  const inOrder = cells.toSorted((a, b) => a.cellId - b.cellId);
  return inOrder.map(({ cellId, isDraining, projects }) => {
    const weights = new Map(projects.map((project) => [project.projectId, weigh(project)]));
    return { cellId, isDraining, projects: weights, load: [...weights.values()].reduce((sum, each) => sum + each, 0) };
  });
}

/**
 * Returns the function that weighs a project: the average of the project's shares in all messages per minute, all
 * unfinished messages, all growth per day, and the number of projects. A measure that is 0 for all projects is left out.
 */
function weightFunction(all: readonly ProjectLoad[]): (project: ProjectLoad) => number {
  const kinds = [
    ({ perMinute }: ProjectLoad) => perMinute,
    ({ unfinished }: ProjectLoad) => unfinished,
    ({ bytesPerDay }: ProjectLoad) => bytesPerDay,
    () => 1,
  ]
    .map((of) => ({ of, total: all.reduce((sum, project) => sum + of(project), 0) }))
    .filter(({ total }) => total > 0);
  return (project) =>
    Math.round((TOTAL_LOAD / kinds.length) * kinds.reduce((sum, { of, total }) => sum + of(project) / total, 0));
}

/** Moves one project out of a cell with too much load. Returns false if no move helps. */
function moveFromFullest(accepting: readonly PlannedCell[], share: number): boolean {
  const to = emptiest(accepting);
  const over = accepting
    .filter(({ load }) => load > share * LOAD_LIMIT_OF_SHARE)
    .toSorted((a, b) => b.load - a.load || a.cellId - b.cellId);
  for (const from of over) {
    const difference = from.load - to.load;
    const [best] = heaviestFirst(from)
      .filter(([, weight]) => weight > 0 && weight <= difference * WEIGHT_MAX_OF_DIFFERENCE)
      .toSorted(([, a], [, b]) => Math.abs(difference / 2 - a) - Math.abs(difference / 2 - b));
    if (best === undefined) continue;
    moveLoad(from, to, best[0]);
    return true;
  }
  return false;
}

function moveLoad(from: PlannedCell, to: PlannedCell, projectId: ProjectId): void {
  const weight = from.projects.get(projectId) ?? 0;
  from.projects.delete(projectId);
  from.load -= weight;
  to.projects.set(projectId, weight);
  to.load += weight;
}

function emptiest(planned: readonly PlannedCell[]): PlannedCell {
  return planned.reduce((one, other) => {
    const isEmptier = other.load < one.load || (other.load === one.load && other.cellId < one.cellId);
    return isEmptier ? other : one;
  });
}

function heaviestFirst({ projects }: PlannedCell): [ProjectId, number][] {
  return [...projects].toSorted(([a, weightA], [b, weightB]) => weightB - weightA || a - b);
}

/** The moves that turn `cells` into `planned`. Moves from draining cells come first, then moves of heavier projects. */
function movesTo(planned: readonly PlannedCell[], cells: readonly LoadedCell[]): PlannedMove[] {
  const before = new Map(cells.flatMap((cell) => cell.projects.map(({ projectId }) => [projectId, cell] as const)));
  return planned
    .flatMap((cell) => heaviestFirst(cell).map(([projectId, weight]) => ({ projectId, weight, toCell: cell.cellId })))
    .flatMap(({ projectId, weight, toCell }) => {
      const { cellId: fromCell = toCell, isDraining = false } = before.get(projectId) ?? {};
      return fromCell === toCell ? [] : [{ projectId, weight, fromCell, toCell, isDraining }];
    })
    .toSorted((a, b) => Number(b.isDraining) - Number(a.isDraining) || b.weight - a.weight || a.projectId - b.projectId)
    .map(({ projectId, fromCell, toCell, isDraining }) => ({
      ...{ projectId, fromCell, toCell },
      why: isDraining ? 'drains' : 'fullest',
    }));
}
