/** `waypost doctor`: checks the consistency of a store, whether its server is running or not. */
import { type Sealer, unsealKeys } from '../accounts/accounts.ts';
import { SealBroken } from '../config/sealing.ts';
import type { Config } from '../config/table.ts';
import type { Driver, Queries } from '../store/driver.ts';
import { PostgresDriver } from '../store/drivers/postgres/driver.ts';
import { isExpiring } from '../store/drivers/postgres/log-partitions.ts';
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
import { type Census, checkInvariants, type Finding, readCensus } from '../store/operations/reports/invariants.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { createSystemRandomness, systemClock } from '../system/system.ts';
import { checkThere, databaseOf, messageOf, openSealer } from './open-store.ts';

/** Long, because the examination walks through all that is stored. */
const EXAMINATION_LIMIT_MS = 30 * 60_000;
/** How many projects are named. */
const NAMED_MAX = 10;

export interface Examination {
  census: Census;
  findings: Finding[];
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

async function examineServer(url: string, config: Config): Promise<Examination> {
  const driver = driverOf(url, config);
  try {
    return await examineFirst(driver, config, 'this database', isExpiring);
  } catch (error) {
    return cannotRead(error);
  } finally {
    await driver.close();
  }
}

export function driverOf(url: string, { databasePrepare }: Config, timeoutMs = EXAMINATION_LIMIT_MS): PostgresDriver {
  return new PostgresDriver({
    url,
    connectionsMax: 1,
    prepares: databasePrepare,
    timeoutMs,
    clock: systemClock,
  });
}

export function cannotRead(error: unknown): never {
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

export function examineWith(driver: Driver, isExpiringIn: IsExpiringIn = async () => false): Promise<Examination> {
  return driver.read(async (queries) => {
    const ofVersion = await examineVersion(queries);
    const isExpiring = await isExpiringIn(queries);
    const findings = await checkInvariants(queries, { isExpiring });
    return { census: await readCensus(queries), findings: [ofVersion, ...findings] };
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
