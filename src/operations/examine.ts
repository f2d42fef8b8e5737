/** What `waypost doctor` does: reads a store, of a running server or a stopped one, and says whether it is sound. */
import type { Config } from '../config/table.ts';
import { FIRST_CELL } from '../engine/model.ts';
import { StoreUnavailable } from '../engine/store-errors.ts';
import type { Driver, Queries } from '../store/driver.ts';
import { PostgresDriver } from '../store/drivers/postgres/driver.ts';
import { isExpiring } from '../store/drivers/postgres/log-days.ts';
import { SqliteDriver } from '../store/drivers/sqlite/driver.ts';
import { listCells } from '../store/operations/accounts/cells.ts';
import { type Census, examine, type Finding, takeCensus } from '../store/operations/invariants.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { createSystemRandomness, systemClock } from '../system/system.ts';
import { urlOf } from './cells.ts';
import { examineCell, examineDirectory } from './examine-cells.ts';
import { checkThere, databaseOf, messageOf, openSealer } from './open-store.ts';

/** Long, because the examination walks through all that is stored. */
const EXAMINATION_LIMIT_MS = 30 * 60_000;
/** A cell that says nothing for this long is away. */
const ANSWER_LIMIT_MS = 5_000;

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
  checkThere(path);
  try {
    const driver = new SqliteDriver({ path, readOnly: true });
    return await examineWith(driver).finally(() => driver.close());
  } catch (error) {
    throw new CannotStart(`cannot read the database ${path}: ${messageOf(error)}`, { cause: error });
  }
}

export interface ExaminedCells {
  /** Undefined: there is only one cell. */
  firstName?: string;
  /** Those beside the first. */
  others: ExaminedCell[];
}

/** The cells beside the first, one after the other. Throws `CannotStart`. */
export async function examineCells(config: Config): Promise<ExaminedCells> {
  const database = databaseOf(config);
  if (database.kind !== 'postgres') return { others: [] };
  const directory = driverOf(database.url, config);
  try {
    const cells = await directory.read((queries) => listCells(queries, {})).catch(cannotRead);
    if (cells.length === 0) return { others: [] };
    const { encryptionKey } = openSealer(config, createSystemRandomness());
    const examined: ExaminedCells = { others: [] };
    for (const { cellId, name, sealedUrl } of cells) {
      if (cellId === FIRST_CELL) {
        examined.firstName = name;
        continue;
      }
      const url = urlOf({ url: database.url, encryptionKey }, { name, sealedUrl });
      const driver = driverOf(url, config);
      try {
        await checkAnswers(url, config);
        const ofCell = await examineCell(directory, cellId, driver);
        const { census, findings } = await examineWith(driver, isExpiring);
        examined.others.push({ name, examination: { census, findings: [...findings, ...ofCell] } });
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
        examined.others.push({ name });
      } finally {
        await driver.close();
      }
    }
    return examined;
  } finally {
    await directory.close();
  }
}

/** Throws `StoreUnavailable` in a few seconds, where the examination would wait for as long as it may take. */
async function checkAnswers(url: string, config: Config): Promise<void> {
  const driver = driverOf(url, config, ANSWER_LIMIT_MS);
  try {
    await driver.read((queries) => queries.query('select 1'));
  } finally {
    await driver.close();
  }
}

async function examineServer(url: string, config: Config): Promise<Examination> {
  const driver = driverOf(url, config);
  try {
    const { census, findings } = await examineWith(driver, isExpiring);
    const ofCells = [...(await examineDirectory(driver)), ...(await examineCell(driver, FIRST_CELL, driver))];
    return { census, findings: [...findings, ...ofCells] };
  } catch (error) {
    return cannotRead(error);
  } finally {
    await driver.close();
  }
}

function driverOf(url: string, { databasePrepare }: Config, timeoutMs = EXAMINATION_LIMIT_MS): PostgresDriver {
  return new PostgresDriver({
    url,
    connectionsMax: 1,
    prepares: databasePrepare,
    timeoutMs,
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
