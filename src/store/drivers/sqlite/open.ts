/** Opens the embedded store: over threads for a server, in the caller's thread for commands, simulations and tests. */

import { statSync } from 'node:fs';
import { StoreUnavailable } from '../../../engine/store-errors.ts';
import type { StoreLimits } from '../../../engine/stores.ts';
import { type Batching, GroupCommit } from '../../batches/group-commit.ts';
import { refuseToGuard, StoreEvents } from '../../connection.ts';
import { createStore } from '../../create.ts';
import { deriveStore } from '../../derive.ts';
import { migrate } from '../../migrations/index.ts';
import { isLongRead } from '../../operations/all.ts';
import type { SqlStore, Store } from '../../store.ts';
import { SqliteDriver, walBytes } from './driver.ts';
import { createForOwner, lockDatabase, reserveWalIndex } from './file.ts';
import type { FileLock } from './lock.ts';
import type { DatabasePorts, ThreadStart } from './messages.ts';
import { DatabaseThread } from './thread.ts';

export interface SqliteStoreOptions {
  /** A file, whose folder is created when it is missing, or `:memory:`. */
  path: string;
  /**
   * Called once when the database cannot be trusted any more, as after a failed fsync. The store then refuses all
   * commands with `StoreUnavailable`. The process must end with a non-zero code, so that recovery reads what is on disk.
   */
  onFatal: (error: Error) => void;
  /** Default: no limits. */
  limits?: StoreLimits;
  batch?: Partial<Batching>;
}

export interface StoreStats {
  /** Committed transactions, the commands in them, and the commands that wait. */
  batches: number;
  commands: number;
  waiting: number;
  /** Size of the database file and of its write-ahead log; 0 in memory. */
  fileBytes: number;
  walBytes: number;
}

export type SqliteStore = Store & { stats(): StoreStats };

/** A store over database threads, which end with the store. Until then, other threads of the process may use them too. */
export type SharedSqliteStore = SqliteStore & {
  /** Ports for `joinSqliteStore` in another thread. The caller must transfer the ports to that thread. */
  connect(): Promise<DatabasePorts>;
};

/**
 * Opens a store over database threads. One thread writes and reads single rows, and another reads lists, so that lists
 * never delay writes. Throws `StoreInUse` when another server has the file open, and an error named `SchemaTooNew` when a
 * newer program has changed the schema.
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<SharedSqliteStore> {
  if (options.path === ':memory:') return openThreads(options.path, undefined, options);
  const { path, lock } = lockDatabase(options.path);
  try {
    createForOwner(path);
    return await openThreads(path, lock, options);
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function openThreads(
  path: string,
  lock: FileLock | undefined,
  { onFatal, limits, batch = {} }: SqliteStoreOptions,
): Promise<SharedSqliteStore> {
  const { endOfTurn } = batch;
  const fail = (error: Error): void => (commits ? commits.fail(error) : onFatal(error));
  const writer = await DatabaseThread.start({ path, role: 'writer', ...(limits && { limits }) }, fail, endOfTurn);
  // A database in memory belongs to its connection, so the writer also reads lists.
  const lister = path === ':memory:' ? undefined : new LazyThread({ path, role: 'reader' }, fail, endOfTurn);
  const events = new StoreEvents();
  const commits = new GroupCommit((commands) => writer.run(commands), events, onFatal, batch);
  const store = deriveStore({
    events,
    guardProjects: refuseToGuard,
    write: (method, args) => commits.run(method, args),
    ...(endOfTurn && { endOfTurn }),
    read: async (method, args) => {
      const thread = lister && isLongRead(method) ? await lister.thread() : writer;
      return thread.read(method, args);
    },
    counts: () => commits.counts,
    close: async () => {
      await commits.close();
      await lister?.close();
      await writer.close();
      if (lock) reserveWalIndex(path);
      lock?.release();
    },
  });
  const connect = async (): Promise<DatabasePorts> => {
    const lists = await lister?.thread();
    return { writer: await writer.connect(), ...(lists && { lister: await lists.connect() }) };
  };
  return Object.assign(withStats(store, path), { connect });
}

/** A thread that starts when it is first needed: many servers never list anything, and a thread costs 15 MiB. */
class LazyThread {
  readonly #start: ThreadStart;
  readonly #onFatal: (error: Error) => void;
  readonly #endOfTurn: (() => Promise<void>) | undefined;
  #started: Promise<DatabaseThread> | undefined;

  constructor(start: ThreadStart, onFatal: (error: Error) => void, endOfTurn?: () => Promise<void>) {
    this.#start = start;
    this.#onFatal = onFatal;
    this.#endOfTurn = endOfTurn;
  }

  /** Throws `StoreUnavailable` when the thread cannot be started now; the next call tries again. */
  thread(): Promise<DatabaseThread> {
    this.#started ??= this.#startOnce();
    return this.#started;
  }

  async #startOnce(): Promise<DatabaseThread> {
    try {
      return await DatabaseThread.start(this.#start, this.#onFatal, this.#endOfTurn);
    } catch (error) {
      this.#started = undefined;
      const reason = error instanceof Error ? error.message : String(error);
      throw new StoreUnavailable(`the thread that reads lists could not start: ${reason}`, { cause: error });
    }
  }

  async close(): Promise<void> {
    const thread = await this.#started?.catch(() => undefined); // a thread that failed to start needs no close
    await thread?.close();
  }
}

/**
 * Opens a store in the caller's thread, for simulations and tests. The file is not locked: the caller must not open the
 * same file twice.
 */
export async function openInlineSqliteStore({
  path,
  onFatal,
  limits,
  batch,
}: SqliteStoreOptions): Promise<SqliteStore> {
  const driver = path === ':memory:' ? await openInMemory() : await openMigrated(path);
  const store = createStore(driver, {
    onFatal,
    ...(limits ? { limits } : {}),
    ...(batch ? { batch } : {}),
  });
  return withStats(store, path);
}

/**
 * Opens a store in the caller's thread, with the lock on the store's file. Meant for commands that do one thing and end,
 * since starting threads would take longer. Throws like `openSqliteStore`.
 */
export async function openLockedInlineSqliteStore(options: SqliteStoreOptions): Promise<SqliteStore> {
  if (options.path === ':memory:') return openInlineSqliteStore(options);
  const { path, lock } = lockDatabase(options.path);
  try {
    createForOwner(path);
    const store = await openInlineSqliteStore({ ...options, path });
    const close = store.close.bind(store);
    return Object.assign(store, {
      close: async () => {
        try {
          await close();
          reserveWalIndex(path);
        } finally {
          lock.release();
        }
      },
    });
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function openMigrated(path: string): Promise<SqliteDriver> {
  const driver = new SqliteDriver({ path });
  await migrate(driver);
  return driver;
}

/** A copy of the first database in memory, with its schema and without rows. */
let emptyImage: Uint8Array | undefined;

/** Every later database in memory is a copy of the first, which is ten times faster for test suites with one per test. */
async function openInMemory(): Promise<SqliteDriver> {
  if (emptyImage) return new SqliteDriver({ path: ':memory:', image: emptyImage });
  const driver = await openMigrated(':memory:');
  emptyImage = driver.image();
  return driver;
}

function withStats(store: SqlStore, path: string): SqliteStore {
  const inMemory = path === ':memory:';
  return Object.assign(store, {
    stats: (): StoreStats => ({
      ...store.counts(),
      fileBytes: inMemory ? 0 : (statSync(path, { throwIfNoEntry: false })?.size ?? 0),
      walBytes: inMemory ? 0 : walBytes(path),
    }),
  });
}
