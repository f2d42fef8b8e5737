/**
 * Checks the invariants between the directory and each cell, for `waypost doctor`. Directory and cells are separate
 * databases, read at different times. So a violation is checked again, and a project that was just being moved is not
 * reported.
 */

import { explainWrongKey } from '../../accounts/open-accounts.ts';
import { createDriver, type Examination, examineStore, examineWith, throwUnreadable } from '../../admin/examine.ts';
import { databaseOf, openSealer } from '../../admin/open-store.ts';
import type { Config } from '../../config/table.ts';
import type { Cell, ProjectMove } from '../../engine/accounts/store.ts';
import { type CellId, FIRST_CELL, type ProjectId } from '../../engine/model.ts';
import { StoreUnavailable } from '../../engine/store-errors.ts';
import type { Driver, Queries } from '../../store/driver.ts';
import { isExpiring } from '../../store/drivers/postgres/log-partitions.ts';
import { PLACEMENT } from '../../store/operations/locking/placement.ts';
import type { Finding } from '../../store/operations/reports/invariants.ts';
import { createSystemRandomness, systemClock } from '../../system/system.ts';
import { isStuck } from '../move/move-lease.ts';
import { listCells, RANGED_NUMBERS, rangeOf } from '../store/directory.ts';
import { listMoves } from '../store/moves.ts';
import { cellUrl } from './cells.ts';

/** A cell that does not respond for this long counts as unreachable. */
const RESPONSE_LIMIT_MS = 5_000;

/** A cell other than the first. A cell without an examination could not be reached. */
export interface ExaminedCell {
  name: string;
  examination?: Examination;
}

export interface ExaminedInstallation {
  /** The examination of the first cell, or of the only store. */
  first: Examination;
  /** The name of the first cell. Undefined if there is only one cell. */
  firstName?: string;
  /** All cells but the first. */
  others: ExaminedCell[];
}

/** Examines all cells, one after another. Throws `CannotStart`. */
export async function examineInstallation(config: Config): Promise<ExaminedInstallation> {
  const database = databaseOf(config);
  const only = await examineStore(config);
  if (database.kind !== 'postgres') return { first: only, others: [] };
  const directory = createDriver(database.url, config);
  try {
    const ofDirectory = [
      ...(await examineDirectory(directory)),
      ...(await examineCell(directory, FIRST_CELL, directory)),
    ];
    const cells = await directory.read((queries) => listCells(queries, {}));
    const examined: ExaminedInstallation = { first: withFindings(only, ofDirectory), others: [] };
    if (cells.length === 0) return examined;
    const { encryptionKey } = openSealer(config, createSystemRandomness());
    for (const { cellId, name, sealedUrl } of cells) {
      if (cellId === FIRST_CELL) {
        examined.firstName = name;
        continue;
      }
      const url = await explainWrongKey(config.dataDir, async () =>
        cellUrl({ url: database.url, encryptionKey }, { name, sealedUrl }),
      );
      examined.others.push({ name, ...(await examineOther(config, url, directory, cellId)) });
    }
    return examined;
  } catch (error) {
    return throwUnreadable(error);
  } finally {
    await directory.close();
  }
}

async function examineOther(
  config: Config,
  url: string,
  directory: Driver,
  cellId: CellId,
): Promise<Pick<ExaminedCell, 'examination'>> {
  const driver = createDriver(url, config);
  try {
    await checkResponds(url, config);
    const ofDirectory = await examineCell(directory, cellId, driver);
    return { examination: withFindings(await examineWith(driver, isExpiring), ofDirectory) };
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    return {};
  } finally {
    await driver.close();
  }
}

function withFindings({ census, findings }: Examination, more: readonly Finding[]): Examination {
  return { census, findings: [...findings, ...more] };
}

/**
 * Throws `StoreUnavailable` after a few seconds if the database does not respond. The examination itself has no time
 * limit.
 */
async function checkResponds(url: string, config: Config): Promise<void> {
  const driver = createDriver(url, config, RESPONSE_LIMIT_MS);
  try {
    await driver.read((queries) => queries.query('select 1'));
  } finally {
    await driver.close();
  }
}

/** The content of the directory, read in one snapshot. */
interface DirectorySnapshot {
  cells: Cell[];
  moves: ProjectMove[];
  projects: ReadonlyMap<ProjectId, { name: string; cellId: CellId }>;
}

/** The maximum of offenders that one finding lists. */
const OFFENDERS_MAX = 10;

/** The findings about the directory itself. Empty while there is only one cell. */
async function examineDirectory(driver: Pick<Driver, 'read'>): Promise<Finding[]> {
  const directory = await readDirectory(driver);
  if (directory.cells.length === 0) return [];
  const nowMs = systemClock.wallMs();
  const nameOf = (cellId: CellId) => directory.cells.find((cell) => cell.cellId === cellId)?.name ?? cellId;
  const stuck = directory.moves.filter((move) => isStuck(move, nowMs));
  return [
    {
      statement: 'Every move of a project is being made by a command.',
      offenders: stuck.slice(0, OFFENDERS_MAX).map(({ projectId, fromCell, toCell, phase }) => {
        const name = directory.projects.get(projectId)?.name ?? projectId;
        const other =
          phase === 'copying' || phase === 'paused' ? `, or "waypost projects move ${name} --cancel" ends it` : '';
        return `project ${name}, from ${nameOf(fromCell)} to ${nameOf(toCell)}, ${phase}: "waypost cells balance --yes" finishes it${other}`;
      }),
    },
  ];
}

/** Compares one cell with the directory, and returns the findings. */
async function examineCell(
  directory: Pick<Driver, 'read'>,
  cellId: CellId,
  driver: Pick<Driver, 'read'>,
): Promise<Finding[]> {
  const examineOnce = async (): Promise<Finding[]> => {
    const found = await readDirectory(directory);
    if (found.cells.length === 0) return [];
    return driver.read(async (queries) => [
      {
        statement: 'Every project is written to in the cell that the directory names.',
        offenders: await misplaced(queries, cellId, found),
      },
      { statement: 'The numbers of a cell come from its range.', offenders: await wrongNumbers(queries, cellId) },
    ]);
  };
  const findings = await examineOnce();
  return findings.some(({ offenders }) => offenders.length > 0) ? examineOnce() : findings;
}

function readDirectory(driver: Pick<Driver, 'read'>): Promise<DirectorySnapshot> {
  return driver.read(async (queries) => {
    const [cells, moves, rows] = await Promise.all([
      listCells(queries, {}),
      listMoves(queries, {}),
      queries.query<{ id: ProjectId; name: string; cell: CellId }>('select id, name, cell from projects'),
    ]);
    return { cells, moves, projects: new Map(rows.map(({ id, name, cell }) => [id, { name, cellId: cell }])) };
  });
}

/** Projects whose placement in the cell contradicts the directory. The cell may not have a row for a new project yet. */
async function misplaced(
  queries: Queries,
  cellId: CellId,
  { projects, moves, cells }: DirectorySnapshot,
): Promise<string[]> {
  const rows = await queries.query<{ id: ProjectId; placement: number }>(
    'select id, placement from projects order by id',
  );
  const isMoving = new Set(moves.map(({ projectId }) => projectId));
  const wrong = rows.flatMap(({ id, placement }) => {
    const project = projects.get(id);
    const wanted = project?.cellId === cellId ? PLACEMENT.here : PLACEMENT.elsewhere;
    if (isMoving.has(id) || placement === wanted) return [];
    const [name] = Object.entries(PLACEMENT).find(([, value]) => value === placement) ?? [placement];
    const home = cells.find((cell) => cell.cellId === project?.cellId)?.name ?? 'no cell';
    return [`project ${project?.name ?? id}: ${name} here, and in ${home} by the directory`];
  });
  return wrong.slice(0, OFFENDERS_MAX);
}

async function wrongNumbers(queries: Queries, cellId: CellId): Promise<string[]> {
  const { first, until } = rangeOf(cellId);
  const rows = await queries.query<{ name: string; next: number; until: number | null }>(
    `select name, next, until from numbers where ${RANGED_NUMBERS} order by name`,
  );
  return rows
    .filter((row) => row.next < first || row.next > until || row.until !== until)
    .map((row) => `${row.name}: the next is ${row.next} and the end ${row.until}, instead of ${first} to ${until}`);
}
