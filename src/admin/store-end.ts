/** One end of a move: parses the URL of a database, and opens the database exclusively. */
import { type Config, SETTINGS } from '../config/table.ts';
import type { Driver } from '../store/driver.ts';
import { PostgresDriver } from '../store/drivers/postgres/driver.ts';
import { countLiveWorkers } from '../store/drivers/postgres/in-use.ts';
import { LogPartitions } from '../store/drivers/postgres/log-partitions.ts';
import { SqliteDriver } from '../store/drivers/sqlite/driver.ts';
import { createForOwner, lockDatabase } from '../store/drivers/sqlite/file.ts';
import { StoreInUse } from '../store/drivers/sqlite/lock.ts';
import type { CopyOptions } from '../store/move/copy.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { systemClock } from '../system/system.ts';
import { checkThere, type Database, databaseAt, databaseOf, messageOf, nameOf } from './open-store.ts';

/** An open database that no server has. */
export interface StoreEnd {
  driver: Driver;
  /** Upkeep after each piece of rows that was written. */
  afterPiece: () => void;
  /** See `CopyOptions`. */
  makeRoom?: NonNullable<CopyOptions['prepareLogs']>;
  close(): Promise<void>;
}

/** One to read rows, one to write them. */
const CONNECTIONS = 2;
/** Emptying a large table is one statement. */
const TIMEOUT_MS = 10 * 60_000;
/** A command that was stopped in the middle of a transaction is out of it before another one takes over. */
const IDLE_MS = 2_000;

/**
 * The database that a URL names. `flag` is the flag it was given with. Throws `CannotStart`, whose message never
 * repeats a password.
 */
export function readDatabaseUrl(text: string, flag: string): Database {
  const { pattern, rule } = SETTINGS.databaseUrl;
  const database = pattern.test(text) ? databaseAt(text) : undefined;
  if (database && (database.kind === 'sqlite' || URL.canParse(text))) return database;
  throw new CannotStart(`${flag} ${rule}`);
}

/** The store of the settings. Throws `CannotStart` for one in memory. */
export function storedDatabaseOf(config: Config): Database {
  if (config.memory) throw new CannotStart('a store in memory ends with its server');
  return databaseOf(config);
}

/** How a database is shown: without its password. */
export function describe(database: Database): string {
  return database.kind === 'sqlite' ? database.path : nameOf(database.url);
}

/** Throws `CannotStart` when it cannot be opened, as while a server has it. `create`: a missing file is made. */
export async function openEnd(database: Database, { create }: { create: boolean }): Promise<StoreEnd> {
  try {
    return database.kind === 'sqlite' ? openFile(database.path, create) : await openPostgres(database.url);
  } catch (error) {
    if (error instanceof CannotStart) throw error;
    if (error instanceof StoreInUse) throw new CannotStart(error.message, { cause: error });
    throw new CannotStart(`cannot open ${describe(database)}: ${messageOf(error)}`, { cause: error });
  }
}

function openFile(givenPath: string, create: boolean): StoreEnd {
  if (!create) checkThere(givenPath);
  const { path, lock } = lockDatabase(givenPath);
  try {
    createForOwner(path);
    const driver = new SqliteDriver({ path });
    return {
      driver,
      afterPiece: () => driver.maintain(),
      close: async () => {
        await driver.close();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function openPostgres(url: string): Promise<StoreEnd> {
  const driver = openPostgresDriver(url);
  try {
    const workers = await driver.read(countLiveWorkers);
    if (workers > 0) {
      throw new CannotStart(
        `${nameOf(url)} is in use by ${workers} worker${workers === 1 ? '' : 's'}: stop the servers first; one that was killed counts until its time-out is over`,
      );
    }
  } catch (error) {
    await driver.close();
    throw error;
  }
  const logPartitions = new LogPartitions(driver);
  return {
    driver,
    afterPiece: () => {},
    makeRoom: (logs) => logPartitions.createFor(logs),
    close: () => driver.close(),
  };
}

/** Not yet connected. `timeoutMs`: of one statement. */
export function openPostgresDriver(url: string, timeoutMs = TIMEOUT_MS): PostgresDriver {
  return new PostgresDriver({
    ...{ url, timeoutMs, idleMs: IDLE_MS },
    connectionsMax: CONNECTIONS,
    prepares: false, // works through every pooler; there are few statements
    clock: systemClock,
  });
}
