/** Measures the totals and the load of each cell. A cell that does not respond is skipped after a few seconds. */

import type { Sealer } from '../../accounts/accounts.ts';
import { databaseOf, messageOf } from '../../admin/open-store.ts';
import { CommandRefused } from '../../admin/socket/commands.ts';
import type { Config } from '../../config/table.ts';
import type { Cell, ProjectMove } from '../../engine/accounts/store.ts';
import type { Totals } from '../../engine/lists/unfinished.ts';
import { type CellId, FIRST_CELL, type ProjectId } from '../../engine/model.ts';
import { PostgresDriver } from '../../store/drivers/postgres/driver.ts';
import { decodeTotals, readTotals } from '../../store/operations/reports/totals.ts';
import type { Store } from '../../store/store.ts';
import { CannotStart } from '../../system/cannot-start.ts';
import { systemClock } from '../../system/system.ts';
import { readCellId } from '../store/directory.ts';
import { type EstimatedLoad, readLoads } from '../store/loads.ts';
import { emptiestOf, type LoadedCell, type ProjectLoad, sharesOf } from './balance-plan.ts';
import { cellUrl, type Directory, FIRST_CELL_NAME } from './cells.ts';

export interface MeasuredCell {
  cell: Omit<Cell, 'addedAtMs'> & Partial<Pick<Cell, 'addedAtMs'>>;
  /** The projects that the directory assigns to the cell. */
  projects: ProjectId[];
  measured?: { totals: Totals; loads: ProjectLoad[]; share: number };
  /** Why the cell could not be measured. */
  reason?: string;
}

export interface MeasuredCells {
  cells: MeasuredCell[];
  moves: ProjectMove[];
  projectName: (projectId: ProjectId) => string;
  cellName: (cellId: CellId) => string;
}

/** The parts of the directory that are needed to reach the other cells. */
export type DirectoryAccess = Pick<Directory, 'config' | 'url' | 'store' | 'encryptionKey'>;

/** The time limit for connecting, and for each query. */
const TIMEOUT_MS = 5_000;
/** The maximum of cells that are measured at the same time. */
const MEASURED_AT_ONCE = 8;
const MINUTES_OF_HOUR = 60;

export async function measureCells(directory: DirectoryAccess): Promise<MeasuredCells> {
  const { store } = directory;
  const [accounts, moves] = await Promise.all([store.projects.readAccounts(), store.moves.listMoves()]);
  const { cells, projects } = accounts;
  const all =
    cells.length > 0 ? cells : [{ cellId: FIRST_CELL, name: FIRST_CELL_NAME, sealedUrl: '', isDraining: false }];
  const found: MeasuredCell[] = all.map((cell) => ({
    cell,
    projects: projects.filter(({ cellId }) => cellId === cell.cellId).map(({ projectId }) => projectId),
  }));
  const results = new Map<CellId, CellMeasure>();
  const reasons = new Map<CellId, string>();
  const remaining = [...found];
  const measureNext = async () => {
    for (let next = remaining.shift(); next; next = remaining.shift()) {
      const { cellId } = next.cell;
      try {
        results.set(cellId, await measure(directory, next.cell));
      } catch (error) {
        reasons.set(cellId, messageOf(error)); // the other cells are still reported
      }
    }
  };
  await Promise.all(Array.from({ length: MEASURED_AT_ONCE }, measureNext));
  const loaded = found.flatMap((each) => loadedCell(each, results.get(each.cell.cellId)) ?? []);
  const shares = sharesOf(loaded);
  const projectNames = new Map(projects.map(({ projectId, name }) => [projectId, name]));
  const cellNames = new Map(all.map(({ cellId, name }) => [cellId, name]));
  return {
    moves,
    projectName: (projectId) => projectNames.get(projectId) ?? String(projectId),
    cellName: (cellId) => cellNames.get(cellId) ?? String(cellId),
    cells: found.map((each) => {
      const { cellId } = each.cell;
      const result = results.get(cellId);
      const loads = loaded.find((cell) => cell.cellId === cellId)?.projects;
      if (!(result && loads)) return { ...each, reason: reasons.get(cellId) ?? '' };
      return { ...each, measured: { totals: result.totals, loads: [...loads], share: shares.get(cellId) ?? 0 } };
    }),
  };
}

/**
 * The cell for a new project: the cell with the least load, among the cells that can be reached and are not draining.
 * Undefined if there is only one cell. Throws `CommandRefused`.
 */
export async function emptiestCell(
  config: Config,
  store: Store,
  { encryptionKey }: Pick<Sealer, 'encryptionKey'>,
): Promise<CellId | undefined> {
  const database = databaseOf(config);
  if (database.kind !== 'postgres' || (await store.cells.listCells()).length === 0) return undefined;
  const cellId = emptiestOf(loadedCells(await measureCells({ config, url: database.url, store, encryptionKey })));
  if (cellId === undefined) throw new CommandRefused('no cell takes new projects now: all drain, or cannot be reached');
  return cellId;
}

/** The cells that were measured, as the input of a plan. */
export function loadedCells({ cells }: Pick<MeasuredCells, 'cells'>): LoadedCell[] {
  return cells.flatMap(({ cell: { cellId, isDraining }, measured }) =>
    measured ? [{ cellId, isDraining, projects: measured.loads }] : [],
  );
}

/** Throws `CannotStart` when the cell cannot be reached now. */
export async function checkReachable(
  directory: DirectoryAccess,
  cell: Pick<Cell, 'cellId' | 'name' | 'sealedUrl'>,
): Promise<void> {
  try {
    await withCell(directory, cell, async () => {});
  } catch (error) {
    throw new CannotStart(`the cell "${cell.name}" cannot be reached: ${messageOf(error)}`, { cause: error });
  }
}

interface CellMeasure {
  totals: Totals;
  loads: EstimatedLoad[];
}

function measure(directory: DirectoryAccess, cell: MeasuredCell['cell']): Promise<CellMeasure> {
  const nowMs = systemClock.wallMs();
  return withCell(directory, cell, async (driver) => {
    const rows = await driver.read((queries) => readTotals(queries, { nowMs }));
    const loads = await driver.read((queries) => readLoads(queries, { nowMs }));
    return { totals: decodeTotals(rows, { nowMs }), loads };
  });
}

/** Connects to the cell for `work`. Throws when the database cannot be reached, or belongs to another cell. */
async function withCell<T>(
  directory: DirectoryAccess,
  cell: Pick<Cell, 'cellId' | 'name' | 'sealedUrl'>,
  work: (driver: PostgresDriver) => Promise<T>,
): Promise<T> {
  const { databasePrepare: prepares, databaseTimeoutMs } = directory.config;
  const timeoutMs = Math.min(TIMEOUT_MS, databaseTimeoutMs);
  const url = cellUrl(directory, cell);
  const driver = new PostgresDriver({ url, connectionsMax: 1, timeoutMs, prepares, clock: systemClock });
  try {
    const cellId = await driver.read((queries) => readCellId(queries, {}));
    if ((cellId ?? FIRST_CELL) !== cell.cellId) throw new Error(`its database is cell ${cellId ?? FIRST_CELL}`);
    return await work(driver);
  } finally {
    await driver.close();
  }
}

/** The cell with the load of all its projects, including idle projects. */
function loadedCell(
  { cell: { cellId, isDraining }, projects }: MeasuredCell,
  result: CellMeasure | undefined,
): LoadedCell | undefined {
  if (!result) return undefined;
  const loads = new Map(result.loads.map((load) => [load.projectId, load]));
  return {
    ...{ cellId, isDraining },
    projects: projects.map((projectId) => {
      const { lastHour = 0, lastDay = 0, unfinished = 0, bytesOfMessage = 0 } = loads.get(projectId) ?? {};
      return { projectId, unfinished, perMinute: lastHour / MINUTES_OF_HOUR, bytesPerDay: lastDay * bytesOfMessage };
    }),
  };
}
