/** Opens the store on PostgreSQL: checks the server, migrates the schema, and connects this worker. */

import type { Clock } from '../../../engine/ports.ts';
import { StoreUnavailable } from '../../../engine/store-errors.ts';
import type { StoreLimits } from '../../../engine/stores.ts';
import type { Batching } from '../../batches/group-commit.ts';
import { StoreEvents } from '../../connection.ts';
import { createStore } from '../../create.ts';
import { isStore, migrate } from '../../migrations/index.ts';
import type { Store } from '../../store.ts';
import type { ConnectionPool } from './connections/pool.ts';
import { listenTargetOf, type Server, Servers } from './connections/servers.ts';
import { locationOf } from './connections/url.ts';
import type { PostgresContext } from './context.ts';
import { PostgresDriver } from './driver.ts';
import { classify } from './failures.ts';
import { LogPartitions } from './log-partitions.ts';
import { Notifications } from './notifications.ts';

export interface PostgresStoreOptions {
  /** `postgres://user:password@host:port/database?sslmode=...`. */
  url: string;
  /** The URL for notifications if `url` leads through a pooler. If empty, workers find due messages a heartbeat late. */
  listenUrl?: string;
  /**
   * Maximum connections, at least three: for a batch, a claim and a read. With more, the next batch or claim starts while the
   * previous one takes longer than `LATE_MS`.
   */
  connectionsMax?: number;
  /** The connections that the stores of this worker share. Default: connections of its own. */
  servers?: Servers | undefined;
  /** Timeout of a statement and of a connection attempt. */
  timeoutMs?: number;
  /** Whether to use prepared statements. False for poolers that do not support them. */
  prepares?: boolean;
  clock: Clock;
  /** Default: the server's clock; see `PostgresContext`. */
  nowMs?: () => number;
  /** Whether to refuse a database without a store instead of creating it. Protects a store whose tables are not found. */
  mustExist?: boolean;
  /** Called with the reason if the server's settings do not make commits durable. */
  onNotDurable?: (reason: string) => void;
  /** Called once when the database cannot be trusted any more. */
  onFatal: (error: Error) => void;
  /** Default: no limits. */
  limits?: StoreLimits;
  batch?: Partial<Batching>;
  /** Identifies this worker as the sender of notifications. Unique among the workers. */
  sender: string;
}

const CONNECTIONS_MAX = 10;
const TIMEOUT_MS = 10_000;
/** A transaction is late after this time: many times the duration of a batch, and as long as a batch waits for a lock. */
const LATE_MS = 100;
/** A batch is late sooner on Citus, where each statement takes an extra round trip: a single batch would mostly wait. */
const LATE_ON_CITUS_MS = 4;

/**
 * Limits how long a worker that hangs within a transaction keeps its locks. Between two statements of a batch there are
 * only microseconds. A batch that exceeds this limit because the machine is slow runs again.
 */
const IDLE_MS = 1_000;
/** Pause between two scouts of a locked project. The pause is short, because the lock may have lasted only a moment. */
const SCOUT_PAUSE_MS = 10;
/** Approximate duration of a pause and a scout together. */
const SCOUT_ROUND_MS = 20;

/** Migrating a large table may take long. */
const MIGRATION_TIMEOUT_MS = 30 * 60_000;
/** Limits how long a worker that hangs between two statements of a migration keeps others from starting. */
const MIGRATION_IDLE_MS = 2_000;
/** The encodings that store every character. */
const ENCODINGS = ['UTF8', 'SQL_ASCII'];
/** In the format of `server_version_num`. */
const OLDEST_VERSION = 140_000;

/**
 * Throws `StoreUnavailable` while the database is unavailable. Throws an error named `SchemaTooNew` when a newer program
 * has changed the schema, and another error when the server is older than PostgreSQL 14.
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const { url, listenUrl = url, connectionsMax = CONNECTIONS_MAX, timeoutMs = TIMEOUT_MS, clock } = options;
  const { servers = new Servers({ connectionsMax, timeoutMs, clock }) } = options;
  const server = servers.at(url, listenTargetOf(listenUrl));
  const opening = {}; // keeps the pool open if its last store closes while this store opens
  server.pool.join(opening);
  try {
    return await openOn(server, options);
  } finally {
    await server.pool.leave(opening);
  }
}

async function openOn({ pool, listenConnection, preparing }: Server, options: PostgresStoreOptions): Promise<Store> {
  const { url, clock, onFatal, limits, batch, sender, nowMs, mustExist = false, onNotDurable = () => {} } = options;
  const { connectionsMax = CONNECTIONS_MAX, timeoutMs = TIMEOUT_MS, prepares = true } = options;
  await checkReachable(pool);
  const migrationContext = {
    url,
    connectionsMax: 2,
    timeoutMs: MIGRATION_TIMEOUT_MS,
    idleMs: MIGRATION_IDLE_MS,
    prepares,
    clock,
  };
  await preparing.run(() => prepareDatabase(migrationContext, { mustExist, onNotDurable }));
  const context = { url, connectionsMax, timeoutMs, prepares, clock, idleMs: IDLE_MS, ...(nowMs && { nowMs }) };
  const driver = new PostgresDriver(context, pool);
  const pauseOf = (ms: number) => () => new Promise<void>((resolve) => clock.startTimer(ms, resolve, 'outside'));
  const logPartitions = new LogPartitions(driver);
  await createPartitions(driver, logPartitions);
  const lateMs = driver.isRouted ? LATE_ON_CITUS_MS : LATE_MS;
  const events = new StoreEvents();
  const notifications = new Notifications(driver, { url, clock, sender }, events, listenConnection);
  return createStore(driver, {
    onFatal,
    events,
    notifications,
    dropTables: (bounds) => logPartitions.drop(bounds),
    ...(limits && { limits }),
    batch: {
      late: { ms: lateMs, pause: pauseOf(lateMs + 1) },
      elapsedMs: () => clock.elapsedMs,
      blocked: { pause: pauseOf(SCOUT_PAUSE_MS), scoutsMax: timeoutMs / SCOUT_ROUND_MS },
      ...batch,
    },
  });
}

/** Throws `StoreUnavailable` when the server hangs. The migration after this check has a much longer timeout. */
async function checkReachable(pool: ConnectionPool): Promise<void> {
  try {
    const client = await pool.take(pool);
    try {
      await client.query('select 1');
      client.release();
    } catch (error) {
      client.release(true);
      throw error;
    }
  } catch (error) {
    throw classify(error);
  }
}

/** Creates partitions for the first log entries. The worker also starts if something, such as a dump, prevents this. */
async function createPartitions(driver: PostgresDriver, logPartitions: LogPartitions): Promise<void> {
  try {
    await logPartitions.createAhead(await driver.transaction((tx) => tx.nowMs()));
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
  }
}

/** Migrates the schema if it is outdated, and checks whether the server's settings make commits durable. */
async function prepareDatabase(
  context: PostgresContext,
  { mustExist, onNotDurable }: Required<Pick<PostgresStoreOptions, 'mustExist' | 'onNotDurable'>>,
): Promise<void> {
  const driver = new PostgresDriver(context);
  try {
    const [server] = await driver.read((queries) =>
      queries.query<{ version: number; encoding: string }>(
        `select cast(current_setting('server_version_num') as bigint) as version,
         current_setting('server_encoding') as encoding`,
      ),
    );
    if (server && server.version < OLDEST_VERSION) throw new Error('PostgreSQL 14 or later is needed');
    if (server && !ENCODINGS.includes(server.encoding))
      throw new Error(`the encoding of the database is ${server.encoding}: UTF8 is needed, for texts of all languages`);
    if (mustExist && !(await driver.read((queries) => isStore(driver, queries)))) {
      throw new StoreUnavailable('the database has no store in the schema that is searched for its tables');
    }
    await createSchema(driver, locationOf(context.url).schema);
    await migrate(driver);
    // Asks the server that has the rows: with Citus, it may not be the connected server.
    const [rows] = await driver.read((queries) =>
      queries.query<{ fsync: string; synchronous: string }>(
        `select current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous
         from migrations where number = 1`,
      ),
    );
    if (rows?.fsync === 'off')
      onNotDurable('the server runs with fsync=off: a power failure loses acknowledged messages');
    if (rows?.synchronous === 'off')
      onNotDurable('synchronous_commit is off by default there; transactions here set it to on');
  } finally {
    await driver.close();
  }
}

/** Creates the schema only if it is missing: the database user may be allowed to use the schema but not to create it. */
async function createSchema(driver: PostgresDriver, schema: string | undefined): Promise<void> {
  if (schema === undefined) return;
  const schemas = await driver.read((queries) =>
    queries.query('select 1 from pg_namespace where nspname = ?', [schema]),
  );
  if (schemas.length === 0) await driver.transaction((tx) => tx.run(`create schema if not exists "${schema}"`));
}
