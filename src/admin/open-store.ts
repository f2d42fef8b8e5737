/** Opens the configured database with its encryption key, for the server and for `waypost init`. */

import { join } from 'node:path';
import type { Sealer } from '../accounts/accounts.ts';
import { keepOutOfGit } from '../config/data-folder.ts';
import { ensureEncryptionKey, missingKeyMessage, readEncryptionKey } from '../config/encryption-key.ts';
import { ENCRYPTION_KEY_BYTES } from '../config/sealing.ts';
import type { Config } from '../config/table.ts';
import type { EventLog, Machine, Randomness } from '../engine/ports.ts';
import type { StoreLimits } from '../engine/stores.ts';
import { randomBase58 } from '../protocol/ids.ts';
import type { Batching } from '../store/batches/group-commit.ts';
import { Servers } from '../store/drivers/postgres/connections/servers.ts';
import { clientOptions, locationOf } from '../store/drivers/postgres/connections/url.ts';
import { PostgresDriver } from '../store/drivers/postgres/driver.ts';
import { openPostgresStore, type PostgresStoreOptions } from '../store/drivers/postgres/open.ts';
import { type CellWatch, watchPostgresStore } from '../store/drivers/postgres/watch.ts';
import { joinSqliteStore } from '../store/drivers/sqlite/join.ts';
import { StoreInUse } from '../store/drivers/sqlite/lock.ts';
import type { DatabasePorts } from '../store/drivers/sqlite/messages.ts';
import { openLockedInlineSqliteStore, openSqliteStore, type SharedSqliteStore } from '../store/drivers/sqlite/open.ts';
import { isStore } from '../store/migrations/index.ts';
import type { Store } from '../store/store.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { isDenied, isReadable } from '../system/folder.ts';
import { createSystemRandomness, endOfTurn, pause, systemClock } from '../system/system.ts';

/** A file on this machine, or a PostgreSQL server that any number of workers share. */
export type Database = { kind: 'sqlite'; path: string } | { kind: 'postgres'; url: string };

/** The configured database. The path of a SQLite file may be `:memory:`. */
export function databaseOf({ memory, databaseUrl, dataDir }: Config): Database {
  if (memory) return { kind: 'sqlite', path: ':memory:' };
  if (databaseUrl === '') return { kind: 'sqlite', path: join(dataDir, 'waypost.db') };
  return parseDatabaseUrl(databaseUrl);
}

/** `url` must match the pattern of the setting `databaseUrl`. Throws `CannotStart` for an invalid parameter. */
export function parseDatabaseUrl(url: string): Database {
  if (url.startsWith('sqlite:')) return { kind: 'sqlite', path: url.slice('sqlite:'.length) };
  try {
    clientOptions(url, 0);
  } catch (error) {
    throw new CannotStart(`cannot use the URL of the database: ${messageOf(error)}`, { cause: error });
  }
  return { kind: 'postgres', url };
}

interface OpenOptions {
  onFatal: (error: Error) => void;
  /** Whether to create a missing store. */
  create: boolean;
  /** Whether to wait a few seconds for a file that another process, such as a command, has open. Default: no. */
  waits?: boolean;
  log?: EventLog;
  /** See `Batching.watch`. */
  watchBatches?: Batching['watch'];
  /** A clock that tests control, for this process and for the database. */
  testClock?: Machine | undefined;
  /** Whether an embedded database runs in the caller's thread, as for a command, or a test with hundreds of stores. */
  isInline?: boolean | undefined;
}

/**
 * An open store. If `connect` is present, other threads of this process must use the same store through `connect`.
 * `stats` is present for an embedded database.
 */
export type OpenedStore = Store &
  Partial<Pick<SharedSqliteStore, 'connect' | 'stats'>> & { openCell?: OpenCell; watchCell?: WatchCell };

/**
 * Opens the store of another cell, over the same connections if the cell is on the same server. `url` is the URL of the
 * cell's database, or only `?schema=...` for a cell in the same database. Throws when the store cannot be opened now.
 */
export type OpenCell = (
  url: string,
  onFatal: (error: Error) => void,
  options?: Pick<PostgresStoreOptions, 'mustExist'>,
) => Promise<Store>;

/** Returns a watch that polls a cell which is not open on this worker. */
export type WatchCell = (url: string) => CellWatch;

/**
 * The tries take five seconds in total: longer than a command, or the shutdown of a server without attempts in flight.
 */
const TRIES = 50;
const BETWEEN_TRIES_MS = 100;

/** Opens the database and migrates it to this program's schema. Throws `CannotStart`. */
export async function openStore(config: Config, options: OpenOptions): Promise<OpenedStore> {
  const database = databaseOf(config);
  const limits = limitsOf(config);
  return database.kind === 'sqlite'
    ? openFile(database.path, limits, options)
    : openServer(database.url, config, limits, options);
}

/** Opens the store that another thread of this process has open, over `ports` from the method `connect` of this store. */
export function joinStore(
  ports: DatabasePorts,
  { onFatal, watchBatches: watch }: Pick<OpenOptions, 'onFatal' | 'watchBatches'>,
): Store {
  return joinSqliteStore(ports, { onFatal, batch: { endOfTurn, watch } });
}

function limitsOf({ queuesMax, parallelismMax, messagesPerDayMax, journalBytesMax }: Config): StoreLimits {
  return { queuesMax, parallelismMax, messagesPerDayMax, journalBytesMax };
}

async function openFile(
  path: string,
  limits: StoreLimits,
  { onFatal, create, isInline = false, waits = false, log, watchBatches: watch }: OpenOptions,
): Promise<OpenedStore> {
  if (!create && path !== ':memory:') checkExists(path);
  const open = isInline ? openLockedInlineSqliteStore : openSqliteStore;
  for (let triesLeft = waits ? TRIES : 1; ; triesLeft -= 1) {
    try {
      return await open({ path, onFatal, limits, batch: { endOfTurn, watch } });
    } catch (error) {
      if (!(error instanceof StoreInUse)) {
        const remedy =
          create && isDenied(error) ? ': create the folder first, owned by the user that Waypost runs as' : '';
        throw new CannotStart(`cannot open the database ${path}: ${messageOf(error)}${remedy}`, { cause: error });
      }
      if (triesLeft === 1) throw new CannotStart(error.message, { cause: error });
      if (triesLeft === TRIES) log?.info('waiting_for_database', { reason: error.message });
      await pause(BETWEEN_TRIES_MS);
    }
  }
}

/** Throws `CannotStart` when the file of the database does not exist, or this user cannot see the file. */
export function checkExists(path: string): void {
  if (isReadable(path)) return;
  throw new CannotStart(
    `there is no database ${path}: set its location with --data-dir or DATABASE_URL; "waypost init" creates a new one`,
  );
}

async function openServer(
  url: string,
  { databaseListenUrl, databasePoolMax, databasePrepare, databaseTimeoutMs }: Config,
  limits: StoreLimits,
  { onFatal, create, log, testClock, watchBatches: watch }: OpenOptions,
): Promise<OpenedStore> {
  const randomness = createSystemRandomness();
  const servers = new Servers({ connectionsMax: databasePoolMax, timeoutMs: databaseTimeoutMs, clock: systemClock });
  const shared = {
    servers,
    connectionsMax: databasePoolMax,
    timeoutMs: databaseTimeoutMs,
    prepares: databasePrepare,
    clock: systemClock,
    ...(testClock && { nowMs: () => testClock.wallMs() }),
    sender: randomBase58(12, (count) => randomness.bytes(count)),
    onNotDurable: (reason: string) => log?.warn('database_not_durable', { reason }),
    limits,
    batch: { endOfTurn, watch },
  };
  const listenUrl = databaseListenUrl === 'off' ? '' : databaseListenUrl || url;
  const urlsOf = (given: string) => {
    const cellUrl = cellUrlOf(given, url);
    // The configured listen URL applies only to the server of the first cell. Other servers need no pooler.
    const isSameServer = locationOf(cellUrl).url === locationOf(url).url;
    return { url: cellUrl, listenUrl: isSameServer || databaseListenUrl === 'off' ? listenUrl : cellUrl };
  };
  const openCell: OpenCell = (given, onCellFatal, cellOptions) =>
    openPostgresStore({ ...shared, ...urlsOf(given), onFatal: onCellFatal, ...cellOptions });
  const watchCell: WatchCell = (given) => {
    const urls = urlsOf(given);
    return watchPostgresStore({ ...shared, url: urls.url }, servers, urls.listenUrl);
  };
  try {
    if (!create) await checkIsStore(url, databaseTimeoutMs);
    return Object.assign(await openPostgresStore({ ...shared, url, listenUrl, onFatal }), { openCell, watchCell });
  } catch (error) {
    if (error instanceof CannotStart) throw error;
    const { cause = error } = error as { cause?: unknown };
    const hasForeignTables = (cause as { code?: unknown }).code === RELATION_EXISTS;
    const remedy = hasForeignTables
      ? ': this database has tables of another program; use another database, or add ?schema=waypost'
      : '';
    throw new CannotStart(`cannot open the database ${displayNameOf(url)}: ${messageOf(error)}${remedy}`, {
      cause: error,
    });
  }
}

/** PostgreSQL's SQLSTATE for a table that already exists. */
const RELATION_EXISTS = '42P07';

/**
 * Throws `CannotStart` unless the database is a store, because opening a database that is named by mistake would create a
 * store in it.
 */
async function checkIsStore(url: string, timeoutMs: number): Promise<void> {
  const driver = new PostgresDriver({ url, connectionsMax: 1, timeoutMs, prepares: false, clock: systemClock });
  try {
    if (await driver.read((queries) => isStore(driver, queries))) return;
  } finally {
    await driver.close();
  }
  throw new CannotStart(`there is no store of Waypost in ${displayNameOf(url)}: "waypost init" creates one`);
}

/** Describes the location of the data, for the operator. Returns undefined if the data is only in memory. */
export function describeDataLocation(config: Config): string | undefined {
  const database = databaseOf(config);
  if (database.kind === 'postgres') return `the database ${displayNameOf(database.url)} (DATABASE_URL)`;
  if (config.memory) return undefined;
  return config.databaseUrl === '' ? config.dataDir : database.path;
}

/** The full URL of a cell. `given` is a full URL, or `?schema=...` for a cell in the same database as the first cell. */
export function cellUrlOf(given: string, firstUrl: string): string {
  if (!given.startsWith('?')) return given;
  const url = new URL(firstUrl);
  url.searchParams.delete('schema');
  for (const [name, value] of new URLSearchParams(given)) url.searchParams.set(name, value);
  return url.href;
}

/** Describes a PostgreSQL database without its password. */
export function displayNameOf(url: string): string {
  const { host, pathname, searchParams } = new URL(url);
  const schema = searchParams.get('schema');
  return `${pathname.slice(1)}${schema === null ? '' : `, schema ${schema},`} on ${host}`;
}

/** Reads the key that encrypts signing keys. Throws `CannotStart`. */
export function openSealer(config: Config, randomness: Randomness): Sealer {
  return readSealer(config, randomness, readEncryptionKey);
}

/**
 * Like `openSealer`, but creates a missing key while the store has no project. In a store with projects, the signing keys
 * are encrypted with the missing key, so a new key would not decrypt them.
 */
export async function ensureSealer(
  config: Config,
  randomness: Randomness,
  store: { projects: Pick<Store['projects'], 'listProjects'> },
): Promise<Sealer> {
  const isNew = (await store.projects.listProjects()).length === 0;
  const sealer = readSealer(config, randomness, isNew ? ensureEncryptionKey : readEncryptionKey);
  if (!config.memory) keepOutOfGit(config.dataDir);
  return sealer;
}

function readSealer(
  config: Config,
  randomness: Randomness,
  find: (settings: Config, randomBytes: Sealer['randomBytes']) => Uint8Array | undefined,
): Sealer {
  const randomBytes = (count: number) => randomness.bytes(count);
  if (config.memory && config.encryptionKey === '') {
    return { encryptionKey: randomBytes(ENCRYPTION_KEY_BYTES), randomBytes };
  }
  let encryptionKey: Uint8Array | undefined;
  try {
    encryptionKey = find(config, randomBytes);
  } catch (error) {
    throw new CannotStart(`cannot use the encryption key: ${messageOf(error)}`, { cause: error });
  }
  if (encryptionKey === undefined) throw new CannotStart(missingKeyMessage(config.dataDir));
  return { encryptionKey, randomBytes };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
