/** What `waypost doctor` does: reads a store, of a running server or a stopped one, and says whether it is sound. */
import { existsSync } from 'node:fs';
import { unseal } from '../config/sealing.ts';
import type { Config } from '../config/table.ts';
import { type CellId, FIRST_CELL, type ProjectId } from '../engine/model.ts';
import { StoreUnavailable } from '../engine/store-errors.ts';
import type { Driver, Queries } from '../store/driver.ts';
import { PostgresDriver } from '../store/drivers/postgres/driver.ts';
import { isExpiring } from '../store/drivers/postgres/log-days.ts';
import { SqliteDriver } from '../store/drivers/sqlite/driver.ts';
import { listCells } from '../store/operations/accounts/cells.ts';
import { type Census, examine, type Finding, takeCensus } from '../store/operations/invariants.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { createSystemRandomness, systemClock } from '../system/system.ts';
import { cellUrlOf, databaseOf, messageOf, openSealer } from './open-store.ts';

/** Long, because the examination walks through all that is stored. */
const EXAMINATION_LIMIT_MS = 30 * 60_000;

export interface Examination {
  census: Census;
  findings: Finding[];
}

/** A cell beside the first. Without an examination it cannot be reached. */
export interface ExaminedCell {
  name: string;
  examination?: Examination;
}

/** Changes nothing, and needs no lock: it sees one snapshot of what is committed. Throws `CannotStart`. */
export async function examineStore(config: Config): Promise<Examination> {
  const database = databaseOf(config);
  if (database.kind === 'postgres') return examineServer(database.url, config);
  const { path } = database;
  if (path === ':memory:') throw new CannotStart('a store in memory cannot be examined from outside its server');
  if (!existsSync(path)) throw new CannotStart(`there is no database ${path}`);
  try {
    const driver = new SqliteDriver({ path, readOnly: true });
    return await examineWith(driver).finally(() => driver.close());
  } catch (error) {
    throw new CannotStart(`cannot read the database ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** The cells beside the first, one after the other; none if there is only one. Throws `CannotStart`. */
export async function examineCells(config: Config): Promise<ExaminedCell[]> {
  const database = databaseOf(config);
  if (database.kind !== 'postgres') return [];
  const directory = driverOf(database.url, config);
  const { cells, homes } = await directory
    .read(async (queries) => ({ cells: await listCells(queries, {}), homes: await homesIn(queries) }))
    .catch(cannotRead)
    .finally(() => directory.close());
  if (cells.length === 0) return [];
  const { encryptionKey } = openSealer(config, createSystemRandomness(), { create: false });
  const examined: ExaminedCell[] = [];
  for (const { cellId, name, sealedUrl } of cells) {
    if (cellId === FIRST_CELL) continue;
    const driver = driverOf(cellUrlOf(unseal(sealedUrl, encryptionKey), database.url), config);
    try {
      const strangers = await driver.read(strangersTo(cellId, homes));
      const { census, findings } = await examineWith(driver, isExpiring);
      examined.push({ name, examination: { census, findings: [...findings, strangers] } });
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      examined.push({ name });
    } finally {
      await driver.close();
    }
  }
  return examined;
}

/** The cell of each project, as the directory has it. */
async function homesIn(queries: Queries): Promise<Map<ProjectId, CellId>> {
  const rows = await queries.query<{ id: ProjectId; cell: CellId }>('select id, cell from projects');
  return new Map(rows.map(({ id, cell }) => [id, cell]));
}

function strangersTo(cellId: CellId, homes: ReadonlyMap<ProjectId, CellId>): (queries: Queries) => Promise<Finding> {
  return async (queries) => {
    const rows = await queries.query<{ id: ProjectId }>('select id from projects where presence = 0');
    return {
      statement: 'Every project that is written to here is one that the directory has here.',
      offenders: rows.filter(({ id }) => homes.get(id) !== cellId).map(({ id }) => `project ${id}`),
    };
  };
}

async function examineServer(url: string, config: Config): Promise<Examination> {
  const driver = driverOf(url, config);
  return examineWith(driver, isExpiring)
    .catch(cannotRead)
    .finally(() => driver.close());
}

function driverOf(url: string, { databasePrepare }: Config): PostgresDriver {
  return new PostgresDriver({
    url,
    connectionsMax: 1,
    prepares: databasePrepare,
    timeoutMs: EXAMINATION_LIMIT_MS,
    clock: systemClock,
  });
}

function cannotRead(error: unknown): never {
  throw new CannotStart(`cannot read the database: ${messageOf(error)}`, { cause: error });
}

function examineWith(
  driver: Driver,
  isExpiringIn: (queries: Queries) => Promise<boolean> = async () => false,
): Promise<Examination> {
  return driver.read(async (queries) => {
    const isExpiring = await isExpiringIn(queries);
    return { census: await takeCensus(queries), findings: await examine(queries, { isExpiring }) };
  });
}
