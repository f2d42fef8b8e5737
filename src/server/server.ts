/** The composition root: opens the shared resources of a process, starts its workers, and closes everything in order. */
import {
  checkKey,
  checkTokens,
  type DevelopmentAccess,
  developmentAccess,
  openAccounts,
} from '../accounts/open-accounts.ts';
import { databaseOf, ensureSealer, messageOf, type OpenedStore, openSealer, openStore } from '../admin/open-store.ts';
import type { Administration } from '../admin/socket/commands.ts';
import { listenForOperator, type OperatorSocket } from '../admin/socket/server.ts';
import { socketPathOf } from '../admin/socket/socket-path.ts';
import { type AccountsInMemory, StoredAdministration } from '../admin/socket/stored-administration.ts';
import type { Config } from '../config/table.ts';
import { releaseAll } from '../engine/create.ts';
import type { Millis } from '../engine/model.ts';
import type { EventLog } from '../engine/ports.ts';
import { createSystemRandomness, systemClock } from '../system/system.ts';
import type { Reading } from '../telemetry/metrics/instruments.ts';
import type { ServerContext } from './context.ts';
import { openMetrics, serveMetrics } from './metrics.ts';
import { thresholdsOf } from './operator-events.ts';
import { WorkerThreads } from './threads/worker-threads.ts';
import { startWorker } from './worker.ts';

export interface ServerOptions
  extends Pick<ServerContext, 'log' | 'credentials' | 'onFatal' | 'clock' | 'testClockOptions'> {
  /**
   * Whether the embedded database runs in this thread: in a test, starting a database thread takes longer than the test.
   * Only for a single worker.
   */
  isStoreInline?: boolean;
  /** A store that the caller opens and closes, so that the caller's next server can use the same store. */
  store?: OpenedStore;
}

export interface RunningServer {
  /** The bound address, as `http://<address>:<port>`. */
  url: string;
  /** Credentials of the first development account; present with `development` credentials. */
  development?: DevelopmentAccess;
  /** The operator's commands on projects and tokens. When a command resolves, all workers know the change. */
  administration: Administration;
  /** The URL of the metrics. Absent if metrics are disabled. */
  metricsUrl?: string;
  /**
   * Accepts no more messages, waits up to `limitMs` for attempts in flight, then closes everything. Interrupted attempts
   * are repeated at the next start. Idempotent.
   */
  stop(limitMs: Millis): Promise<void>;
}

/** Resolves when the server accepts requests. Throws `CannotStart` for problems that the operator can fix. */
export async function startServer(config: Config, options: ServerOptions): Promise<RunningServer> {
  const opened: (() => Promise<unknown>)[] = [];
  try {
    return await start(config, options, opened);
  } catch (error) {
    for (const close of opened.reverse()) await close();
    throw error;
  }
}

/** Starts the resources in order. For each resource, adds a function to `opened` that closes the resource. */
async function start(
  config: Config,
  options: ServerOptions,
  opened: (() => Promise<unknown>)[],
): Promise<RunningServer> {
  const { log, credentials, onFatal, clock: testClock, isStoreInline: isInline } = options;
  const randomness = createSystemRandomness();
  const create = credentials === 'development';
  const metrics = config.workers === 1 ? openMetrics(config) : undefined; // several workers have their own metrics
  const watchBatches = metrics?.watchBatches;
  const store =
    options.store ??
    (await openStore(config, { onFatal, create, waits: true, log, testClock, isInline, watchBatches }));
  const closeStore = options.store ? async () => {} : once(() => store.close());
  opened.push(closeStore);
  await checkTokens(store, credentials, log);
  const sealer = create ? await ensureSealer(config, randomness, store) : openSealer(config, randomness);
  await checkKey(store, sealer, config.dataDir);
  const context: ServerContext = { ...options, config, store, sealer, metrics };
  const workers = config.workers === 1 ? await startSingleWorker(context) : await startThreads(context);
  opened.push(() => workers.stop(0));
  if (config.workers > 1 && !store.connect) await closeStore(); // each worker opens its own store
  const { accounts } = workers;
  const administration = new StoredAdministration({
    ...{ store, clock: systemClock, randomness, sealer: () => sealer, accounts },
    notifyWorkers: () => workers.refreshAccounts(),
  });
  const operatorSocket =
    credentials === 'own' && !config.memory ? await openOperatorSocket(config, administration, log) : undefined;
  if (operatorSocket) opened.push(() => operatorSocket.close());
  const metricsServer = await serveMetrics(config, { read: () => workers.readMetrics(), log });
  if (metricsServer) opened.push(() => metricsServer.close());
  const url = await workers.listen();
  return {
    url,
    administration,
    ...(metricsServer && { metricsUrl: metricsServer.url }),
    ...(workers.development && { development: workers.development }),
    stop: once(async (limitMs: Millis) => {
      await workers.stop(limitMs);
      await operatorSocket?.close();
      await metricsServer?.close();
      await closeStore();
    }),
  };
}

/** The workers of the process: one worker in this thread, or several workers in threads of their own. */
interface Workers {
  /** The accounts of the thread that starts the workers. */
  accounts: AccountsInMemory;
  development: DevelopmentAccess | undefined;
  /** Resolves when all workers use the current accounts of the store. */
  refreshAccounts: () => Promise<void>;
  /** Makes the workers listen, and resolves to the URL. Throws `CannotStart`. */
  listen: () => Promise<string>;
  readMetrics: () => Promise<Reading[]>;
  stop: (limitMs: Millis) => Promise<void>;
}

async function startSingleWorker(context: ServerContext): Promise<Workers> {
  const { config, credentials, clock = systemClock } = context;
  const worker = await startWorker({ ...context, machine: clock, rank: 'first', isRecovered: false });
  const { accounts } = worker;
  return {
    accounts,
    development: credentials === 'development' ? developmentAccess(accounts) : undefined,
    refreshAccounts: async () => {}, // the only worker already uses the changed accounts
    listen: async () => (await worker.listen({ host: config.host, port: config.port, isShared: false })).url,
    readMetrics: async () => [await worker.readMetrics()],
    stop: (limitMs) => worker.stop(limitMs),
  };
}

async function startThreads(context: ServerContext): Promise<Workers> {
  const { config, store, sealer, credentials, log } = context;
  if (context.clock) throw new Error('a clock that tests control cannot be shared with other threads');
  const accounts = await openAccounts(store, sealer, {
    ...{ credentials, clock: systemClock, isShared: false },
    ...{ log, dataDir: config.dataDir },
  });
  // Releases the claims of the last process once for all threads, before any thread claims a message.
  const release =
    store.connect &&
    (await releaseAll({ store, clock: systemClock, log }, thresholdsOf(config)?.worker_lost !== undefined));
  const threads = await WorkerThreads.start(context);
  return {
    accounts,
    development: credentials === 'development' ? developmentAccess(accounts) : undefined,
    refreshAccounts: () => threads.refreshAccounts(),
    listen: () => threads.listen(),
    readMetrics: () => threads.readMetrics(),
    stop: async (limitMs) => {
      await release?.stop();
      await threads.stop(limitMs);
    },
  };
}

/** Resolves to undefined if the socket cannot be opened: the operator must then stop the server to run commands. */
async function openOperatorSocket(
  config: Config,
  administration: Administration,
  log: EventLog,
): Promise<OperatorSocket | undefined> {
  const database = databaseOf(config);
  // On PostgreSQL, commands write to the database directly, and every worker reads the changes from the database.
  if (database.kind !== 'sqlite') return undefined;
  try {
    return await listenForOperator(socketPathOf(database.path), administration, log);
  } catch (error) {
    log.warn('no_operator_socket', { reason: messageOf(error) });
    return undefined;
  }
}

function once<Args extends unknown[]>(close: (...args: Args) => Promise<void>): (...args: Args) => Promise<void> {
  let closing: Promise<void> | undefined;
  return (...args) => {
    closing ??= close(...args);
    return closing;
  };
}
