/** The source or target of a move: parses the URL of a database, and opens the database while no server uses it. */
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
import { checkExists, type Database, databaseOf, displayNameOf, messageOf, parseDatabaseUrl } from './open-store.ts';

/** An open database that no server uses. */
export interface ExclusiveStore {
  driver: Driver;
  /** Runs maintenance after each written chunk. */
  afterChunk: () => void;
  /** See `CopyOptions`. */
  prepareLogs?: NonNullable<CopyOptions['prepareLogs']>;
  close(): Promise<void>;
}

/** One connection reads rows, the other writes them. */
const CONNECTIONS = 2;
/** The timeout of a statement is long, because one statement empties a large table. */
const TIMEOUT_MS = 10 * 60_000;
/**
 * The limit after which PostgreSQL ends an idle transaction, so that a stopped command loses its transaction before
 * another command takes over the move.
 */
const IDLE_MS = 2_000;

/** Parses the database URL in the command-line flag `flag`. Throws `CannotStart`, without the password in its message. */
export function readDatabaseUrl(text: string, flag: string): Database {
  const { pattern, rule } = SETTINGS.databaseUrl;
  const database = pattern.test(text) ? parseDatabaseUrl(text) : undefined;
  if (database && (database.kind === 'sqlite' || URL.canParse(text))) return database;
  throw new CannotStart(`${flag} ${rule}`);
}

/** The configured database. Throws `CannotStart` if this database is in memory. */
export function storedDatabaseOf(config: Config): Database {
  if (config.memory) throw new CannotStart('a store in memory ends with its server');
  return databaseOf(config);
}

/** Describes a database without its password. */
export function describeDatabase(database: Database): string {
  return database.kind === 'sqlite' ? database.path : displayNameOf(database.url);
}

/**
 * Throws `CannotStart` if a server uses the database, or if the database cannot be opened. `create`: create a missing
 * file.
 */
export async function openExclusiveStore(database: Database, { create }: { create: boolean }): Promise<ExclusiveStore> {
  try {
    return database.kind === 'sqlite' ? openFile(database.path, create) : await openPostgres(database.url);
  } catch (error) {
    if (error instanceof CannotStart) throw error;
    if (error instanceof StoreInUse) throw new CannotStart(error.message, { cause: error });
    throw new CannotStart(`cannot open ${describeDatabase(database)}: ${messageOf(error)}`, { cause: error });
  }
}

function openFile(databasePath: string, create: boolean): ExclusiveStore {
  if (!create) checkExists(databasePath);
  const { path, lock } = lockDatabase(databasePath);
  try {
    createForOwner(path);
    const driver = new SqliteDriver({ path });
    return {
      driver,
      afterChunk: () => driver.maintain(),
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

async function openPostgres(url: string): Promise<ExclusiveStore> {
  const driver = openPostgresDriver(url);
  try {
    const workers = await driver.read(countLiveWorkers);
    if (workers > 0) {
      throw new CannotStart(
        `${displayNameOf(url)} is in use by ${workers} worker${workers === 1 ? '' : 's'}: stop the servers first; a killed one counts until its timeout`,
      );
    }
  } catch (error) {
    await driver.close();
    throw error;
  }
  const logPartitions = new LogPartitions(driver);
  return {
    driver,
    afterChunk: () => {},
    prepareLogs: (logs) => logPartitions.createFor(logs),
    close: () => driver.close(),
  };
}

/** Creates a driver that connects when the driver is first used. `timeoutMs` limits each statement. */
export function openPostgresDriver(url: string, timeoutMs = TIMEOUT_MS): PostgresDriver {
  return new PostgresDriver({
    ...{ url, timeoutMs, idleMs: IDLE_MS },
    connectionsMax: CONNECTIONS,
    prepares: false, // unprepared statements work through every pooler, and are fast enough for a few statements
    clock: systemClock,
  });
}
