/** `waypost doctor`: checks the consistency of a store, with or without a running server. */
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
import { checkExists, databaseOf, messageOf, openSealer } from './open-store.ts';

/** The limit is long, because the examination reads all rows. */
const EXAMINATION_LIMIT_MS = 30 * 60_000;
/** The maximum of projects that a finding names. */
const NAMED_MAX = 10;

export interface Examination {
  census: Census;
  findings: Finding[];
}

/**
 * Examines one snapshot of the committed data. The examination changes nothing and needs no lock. Throws `CannotStart`.
 */
export async function examineStore(config: Config): Promise<Examination> {
  const database = databaseOf(config);
  if (database.kind === 'postgres') return examineServer(database.url, config);
  const { path } = database;
  if (path === ':memory:') throw new CannotStart('a store in memory cannot be examined from outside its server');
  checkExists(path);
  try {
    const driver = new SqliteDriver({ path, readOnly: true });
    return await examineDirectory(driver, config, 'this file').finally(() => driver.close());
  } catch (error) {
    if (error instanceof CannotStart) throw error;
    throw new CannotStart(`cannot read the database ${path}: ${messageOf(error)}`, { cause: error });
  }
}

async function examineServer(url: string, config: Config): Promise<Examination> {
  const driver = createDriver(url, config);
  try {
    return await examineDirectory(driver, config, 'this database', isExpiring);
  } catch (error) {
    return throwUnreadable(error);
  } finally {
    await driver.close();
  }
}

export function createDriver(
  url: string,
  { databasePrepare }: Config,
  timeoutMs = EXAMINATION_LIMIT_MS,
): PostgresDriver {
  return new PostgresDriver({
    url,
    connectionsMax: 1,
    prepares: databasePrepare,
    timeoutMs,
    clock: systemClock,
  });
}

export function throwUnreadable(error: unknown): never {
  if (error instanceof CannotStart) throw error;
  throw new CannotStart(`cannot read the database: ${messageOf(error)}`, { cause: error });
}

type IsExpiringIn = (queries: Queries) => Promise<boolean>;

/** Examines the directory, which has the list of projects. `place` describes the database in errors. */
async function examineDirectory(
  driver: Driver,
  config: Config,
  place: string,
  isExpiringIn?: IsExpiringIn,
): Promise<Examination> {
  await driver.read(async (queries) => {
    if (await isStore(driver, queries)) return;
    throw new CannotStart(`there is no store of Waypost in ${place}: "waypost init" creates one`);
  });
  const { census, findings } = await examineWith(driver, isExpiringIn);
  return { census, findings: [...findings, await driver.read((queries) => examineKey(queries, config))] };
}

export function examineWith(driver: Driver, isExpiringIn: IsExpiringIn = async () => false): Promise<Examination> {
  return driver.read(async (queries) => {
    const versionFinding = await examineVersion(queries);
    const isExpiring = await isExpiringIn(queries);
    const findings = await checkInvariants(queries, { isExpiring });
    return { census: await readCensus(queries), findings: [versionFinding, ...findings] };
  });
}

/**
 * Throws `CannotStart` if the store cannot be examined, because of an unfinished move or an outdated schema. Throws
 * `SchemaUnreleased`.
 */
async function examineVersion(queries: Queries): Promise<Finding> {
  const applied = await appliedMigrations(queries);
  const numbers = new Set(applied.map(({ number }) => number));
  if (numbers.has(UNFINISHED_MOVE)) throw new CannotStart(new MoveUnfinished().message);
  if (MIGRATIONS.some(({ number }) => !numbers.has(number))) {
    throw new CannotStart(
      'the store has the schema of an older version: start a server of this version first, which migrates it; then run "waypost doctor"',
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
