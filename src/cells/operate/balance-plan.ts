/**
 * Plans which projects move, so that draining cells become empty and the fullest of the others lose load. Pure, and the same
 * for the same loads. After the plan was carried out, the next one is empty.
 */
import type { CellId, ProjectId } from '../../engine/model.ts';

export interface ProjectLoad {
  projectId: ProjectId;
  /** Messages accepted in the last hour, by the minute. */
  perMinute: number;
  unfinished: number;
  /** What a day adds, estimated. */
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

/** A cell that has no more than its share, and a tenth of it, is left as it is. */
const OVER_SHARE = 1.1;
/** A project that would take more than this part of the difference between two cells stays: it would be the same problem there. */
const PART_MAX = 0.75;
/** Loads are whole numbers, so that sums do not depend on their order. */
const WHOLE = 1e12;

/**
 * `cells`: those that can be reached. Projects of cells that drain go first, the heaviest of them first, each to the cell that
 * has the least; if no cell takes any, they stay. Then the fullest cell gives to the emptiest, as long as that helps.
 */
export function planBalance(cells: readonly LoadedCell[]): PlannedMove[] {
  const planned = plannedCellsOf(cells);
  const taking = planned.filter(({ isDraining }) => !isDraining);
  if (taking.length === 0) return [];
  for (const cell of planned) {
    if (!cell.isDraining) continue;
    for (const [projectId] of heaviestFirst(cell)) moveLoad(cell, emptiest(taking), projectId);
  }
  const share = taking.reduce((sum, { load }) => sum + load, 0) / taking.length;
  while (levelOnce(taking, share));
  return movesInto(planned, cells);
}

/** Where a new project is to live; undefined: nowhere. `cells`: those that can be reached. */
export function emptiestOf(cells: readonly LoadedCell[]): CellId | undefined {
  const taking = plannedCellsOf(cells).filter(({ isDraining }) => !isDraining);
  return taking.length === 0 ? undefined : emptiest(taking).cellId;
}

/** Which part of all load each cell has, from 0 to 1. */
export function sharesOf(cells: readonly LoadedCell[]): Map<CellId, number> {
  return new Map(plannedCellsOf(cells).map(({ cellId, load }) => [cellId, load / WHOLE]));
}

interface PlannedCell {
  cellId: CellId;
  isDraining: boolean;
  /** Its projects with their weights. */
  projects: Map<ProjectId, number>;
  /** The sum of them. */
  load: number;
}

function plannedCellsOf(cells: readonly LoadedCell[]): PlannedCell[] {
  const all = cells.flatMap(({ projects }) => projects).toSorted((a, b) => a.projectId - b.projectId);
  const weigh = weighing(all);
  const inOrder = cells.toSorted((a, b) => a.cellId - b.cellId);
  return inOrder.map(({ cellId, isDraining, projects }) => {
    const weights = new Map(projects.map((project) => [project.projectId, weigh(project)]));
    return { cellId, isDraining, projects: weights, load: [...weights.values()].reduce((sum, each) => sum + each, 0) };
  });
}

/**
 * The weight of a project: its part of all messages a minute, of all that is unfinished, of all bytes that a day adds, and of all projects,
 * on average. What nobody has is left out.
 */
function weighing(all: readonly ProjectLoad[]): (project: ProjectLoad) => number {
  const kinds = [
    ({ perMinute }: ProjectLoad) => perMinute,
    ({ unfinished }: ProjectLoad) => unfinished,
    ({ bytesPerDay }: ProjectLoad) => bytesPerDay,
    () => 1,
  ]
    .map((of) => ({ of, total: all.reduce((sum, project) => sum + of(project), 0) }))
    .filter(({ total }) => total > 0);
  return (project) =>
    Math.round((WHOLE / kinds.length) * kinds.reduce((sum, { of, total }) => sum + of(project) / total, 0));
}

/** Moves one project out of a cell that has more than its share. False: nothing helps. */
function levelOnce(taking: readonly PlannedCell[], share: number): boolean {
  const to = emptiest(taking);
  const over = taking
    .filter(({ load }) => load > share * OVER_SHARE)
    .toSorted((a, b) => b.load - a.load || a.cellId - b.cellId);
  for (const from of over) {
    const difference = from.load - to.load;
    const [best] = heaviestFirst(from)
      .filter(([, weight]) => weight > 0 && weight <= difference * PART_MAX)
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

/** From where projects are to where they are to be: those of cells that drain first, then the heaviest. */
function movesInto(planned: readonly PlannedCell[], cells: readonly LoadedCell[]): PlannedMove[] {
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
