/** What `waypost doctor` does: reads a store, of a running server or a stopped one, and says whether it is sound. */
import { type Sealer, unsealKeys } from '../accounts/accounts.ts';
import { orTellOfKey } from '../accounts/open-accounts.ts';
import { urlOf } from '../cells/operate/cells.ts';
import { examineCell, examineDirectory } from '../cells/operate/examine-cells.ts';
import { listCells } from '../cells/store/directory.ts';
import { SealBroken } from '../config/sealing.ts';
import type { Config } from '../config/table.ts';
import { FIRST_CELL } from '../engine/model.ts';
import { StoreUnavailable } from '../engine/store-errors.ts';
import type { Driver, Queries } from '../store/driver.ts';
import { PostgresDriver } from '../store/drivers/postgres/driver.ts';
import { isExpiring } from '../store/drivers/postgres/log-days.ts';
import { SqliteDriver } from '../store/drivers/sqlite/driver.ts';
import {
  appliedMigrations,
  checkSchema,
  isStore,
  MIGRATIONS,
  MoveUnfinished,
  SchemaTooNew,
  UNFINISHED_MOVE,
} from '../store/migrations/index.ts';
import { readAccounts } from '../store/operations/accounts/projects.ts';
import { type Census, examine, type Finding, takeCensus } from '../store/operations/invariants.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { createSystemRandomness, systemClock } from '../system/system.ts';
import { checkThere, databaseOf, messageOf, openSealer } from './open-store.ts';

/** Long, because the examination walks through all that is stored. */
const EXAMINATION_LIMIT_MS = 30 * 60_000;
/** How many projects are named. */
const NAMED_MAX = 10;
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
    return await examineFirst(driver, config, 'this file').finally(() => driver.close());
  } catch (error) {
    if (error instanceof CannotStart) throw error;
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
      const url = await orTellOfKey(config.dataDir, async () =>
        urlOf({ url: database.url, encryptionKey }, { name, sealedUrl }),
      );
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
    const { census, findings } = await examineFirst(driver, config, 'this database', isExpiring);
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
  if (error instanceof CannotStart) throw error;
  throw new CannotStart(`cannot read the database: ${messageOf(error)}`, { cause: error });
}

type IsExpiringIn = (queries: Queries) => Promise<boolean>;

/** The store that has the projects. `place`: what it lies in. */
async function examineFirst(
  driver: Driver,
  config: Config,
  place: string,
  isExpiringIn?: IsExpiringIn,
): Promise<Examination> {
  await driver.read(async (queries) => {
    if (await isStore(driver, queries)) return;
    throw new CannotStart(`there is no store of Waypost in ${place}: "waypost init" makes one`);
  });
  const { census, findings } = await examineWith(driver, isExpiringIn);
  return { census, findings: [...findings, await driver.read((queries) => examineKey(queries, config))] };
}

function examineWith(driver: Driver, isExpiringIn: IsExpiringIn = async () => false): Promise<Examination> {
  return driver.read(async (queries) => {
    const ofVersion = await examineVersion(queries);
    const isExpiring = await isExpiringIn(queries);
    const findings = await examine(queries, { isExpiring });
    return { census: await takeCensus(queries), findings: [ofVersion, ...findings] };
  });
}

/** Throws `CannotStart` for a store that has not all that is examined, and `SchemaUnreleased`. */
async function examineVersion(queries: Queries): Promise<Finding> {
  const applied = await appliedMigrations(queries);
  const numbers = new Set(applied.map(({ number }) => number));
  if (numbers.has(UNFINISHED_MOVE)) throw new CannotStart(new MoveUnfinished().message);
  if (MIGRATIONS.some(({ number }) => !numbers.has(number))) {
    throw new CannotStart(
      'the store is of an older version: the first start of a server brings it to this one; run "waypost doctor" after that',
    );
  }
  const offenders: string[] = [];
  try {
    await checkSchema(queries);
  } catch (error) {
    if (!(error instanceof SchemaTooNew)) throw error;
    offenders.push(error.message);
  }
  return { statement: 'This version may work with the store.', offenders };
}

async function examineKey(queries: Queries, config: Config): Promise<Finding> {
  const statement = 'The encryption key opens the signing keys of every project.';
  const { projects } = await readAccounts(queries, {});
  if (projects.length === 0) return { statement, offenders: [] };
  let sealer: Sealer;
  try {
    sealer = openSealer(config, createSystemRandomness());
  } catch (error) {
    if (!(error instanceof CannotStart)) throw error;
    return { statement, offenders: [error.message] };
  }
  const offenders = projects.flatMap(({ name, signingKeys }) => {
    try {
      unsealKeys(signingKeys, name, sealer);
      return [];
    } catch (error) {
      if (error instanceof SealBroken) return `project ${name}`;
      throw error;
    }
  });
  return { statement, offenders: offenders.slice(0, NAMED_MAX) };
}
