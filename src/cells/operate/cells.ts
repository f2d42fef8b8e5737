/** Adds and drains cells for the operator, directly in the databases. Workers read the changes from the directory. */

import { checkSealer } from '../../accounts/accounts.ts';
import { explainWrongKey } from '../../accounts/open-accounts.ts';
import { openPostgresDriver } from '../../admin/exclusive-store.ts';
import {
  cellUrlOf,
  databaseOf,
  displayNameOf,
  messageOf,
  type OpenCell,
  openSealer,
  openStore,
} from '../../admin/open-store.ts';
import { waitForConfirmations } from '../../admin/socket/wait-for-confirmations.ts';
import { seal, unseal } from '../../config/sealing.ts';
import type { Config } from '../../config/table.ts';
import type { Cell } from '../../engine/accounts/store.ts';
import { type CellId, FIRST_CELL, type Millis } from '../../engine/model.ts';
import { isName } from '../../protocol/names.ts';
import type { Driver } from '../../store/driver.ts';
import type { Store } from '../../store/store.ts';
import { CannotStart } from '../../system/cannot-start.ts';
import { createSystemRandomness, systemClock } from '../../system/system.ts';

/** The name of the first cell. */
export const FIRST_CELL_NAME = 'first';

/** The directory, open for one command. */
export interface Directory {
  config: Config;
  url: string;
  store: Store;
  openCell: OpenCell;
  encryptionKey: Uint8Array;
  randomBytes: (count: number) => Uint8Array;
}

/**
 * Turns an unused database, or an unused schema of a database, into a cell. Resolves when all workers know the cell.
 * After an interruption, another call completes the cell. Throws `CannotStart`.
 */
export function addCell(config: Config, { name, url }: { name: string; url: string }): Promise<void> {
  if (!isName(name))
    throw new CannotStart(
      `${JSON.stringify(name)} cannot be a cell's name: 1 to 255 letters, digits, "-", "_" and "." can`,
    );
  return withDirectory(config, async (directory) => {
    const { store } = directory;
    const found = (await store.cells.listCells()).find((cell) => cell.name === name);
    if (found && cellUrl(directory, found) !== cellUrlOf(url, directory.url)) {
      throw new CannotStart(`there is a cell "${name}" already, at ${displayNameOf(cellUrl(directory, found))}`);
    }
    const added = await openNewCell(directory, url);
    try {
      const own = await added.cells.readCellId();
      if (own !== undefined && own !== found?.cellId) throw new CannotStart('this database is a cell already');
      if (own === undefined && (await added.projects.listProjects()).length > 0) {
        throw new CannotStart('this database has projects of its own: a new cell is empty');
      }
      const { encryptionKey, randomBytes } = directory;
      const cell = await store.cells.addCell({
        name,
        sealedUrl: seal(url, encryptionKey, randomBytes),
        nowMs: systemClock.wallMs(),
        firstName: FIRST_CELL_NAME,
      });
      await added.cells.initializeCell({ cellId: cell.cellId });
    } finally {
      await added.close();
    }
    await waitForWorkers(directory);
  });
}

/** Starts or ends draining: a draining cell gets no new projects. Throws `CannotStart`. */
export function drainCell(config: Config, { name, isDraining }: { name: string; isDraining: boolean }): Promise<void> {
  return withDirectory(config, async ({ store }) => {
    const cell = await cellNamed(store, name);
    await store.cells.setCellDraining({ cellId: cell.cellId, isDraining });
  });
}

/** Throws `CannotStart`. */
export async function cellNamed(store: Store, name: string): Promise<Cell> {
  const cell = (await store.cells.listCells()).find((each) => each.name === name);
  if (cell) return cell;
  throw new CannotStart(`there is no cell ${JSON.stringify(name)}; "waypost cells" lists them`);
}

/** Throws `CannotStart`. */
export async function withDirectory<T>(config: Config, work: (directory: Directory) => Promise<T>): Promise<T> {
  const database = databaseOf(config);
  if (database.kind !== 'postgres')
    throw new CannotStart('an embedded database is one cell: WAYPOST_DATABASE_URL names a PostgreSQL for several');
  let failure: Error | undefined;
  const onFatal = (error: Error) => {
    failure = error;
  };
  const sealer = openSealer(config, createSystemRandomness());
  const store = await openStore(config, { onFatal, create: false });
  try {
    const { openCell } = store;
    if (!openCell) throw new Error('this store has no cells');
    return await explainWrongKey(config.dataDir, async () => {
      await checkSealer(store, sealer);
      return work({ config, url: database.url, store, openCell, ...sealer });
    });
  } catch (error) {
    throw failure ?? error;
  } finally {
    await store.close();
  }
}

export function cellUrl(
  { url, encryptionKey }: Pick<Directory, 'url' | 'encryptionKey'>,
  { name, sealedUrl }: Pick<Cell, 'name' | 'sealedUrl'>,
): string {
  return sealedUrl === '' ? url : cellUrlOf(unseal(sealedUrl, encryptionKey, `the URL of the cell "${name}"`), url);
}

/** Creates a driver for one of the cells, not yet connected. `timeoutMs`: the limit of one statement. */
export function openCellDriver(
  directory: Pick<Directory, 'url' | 'encryptionKey'>,
  cells: readonly Cell[],
  cellId: CellId,
  timeoutMs?: Millis,
): Driver {
  const cell = cells.find((each) => each.cellId === cellId && cellId !== FIRST_CELL);
  return openPostgresDriver(cell ? cellUrl(directory, cell) : directory.url, timeoutMs);
}

async function openNewCell({ openCell, url: firstUrl }: Directory, url: string): Promise<Store> {
  try {
    return await openCell(url, () => {});
  } catch (error) {
    throw new CannotStart(`cannot open the database ${displayNameOf(cellUrlOf(url, firstUrl))}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

async function waitForWorkers({ store, config: { workerTimeoutMs } }: Directory): Promise<void> {
  const behind = await waitForConfirmations(store, systemClock, workerTimeoutMs);
  if (behind.length === 0) return;
  throw new CannotStart(`it is done, but these workers have not said that they know of it: ${behind.join(', ')}`);
}
