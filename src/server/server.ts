/** The composition root: opens what a process has once, starts its workers, and ends all of it in order. */
import type { Sealer } from '../accounts/accounts.ts';
import {
  type Credentials,
  checkTokens,
  type DevelopmentAccess,
  developmentAccess,
  openAccounts,
} from '../accounts/open-accounts.ts';
import type { Config } from '../config/table.ts';
import { releaseAll } from '../engine/create.ts';
import type { Millis } from '../engine/model.ts';
import type { EventLog, Machine } from '../engine/ports.ts';
import { databaseOf, messageOf, type OpenedStore, openSealer, openStore } from '../operations/open-store.ts';
import { announced } from '../operations/socket/announced.ts';
import type { Administration } from '../operations/socket/commands.ts';
import { listenForOperator, type OperatorSocket } from '../operations/socket/listen.ts';
import { socketPathOf } from '../operations/socket/socket-path.ts';
import { type AccountsInMemory, StoredAdministration } from '../operations/socket/stored.ts';
import { createSystemRandomness, systemClock } from '../system/system.ts';
import { Threads } from './threads/supervise.ts';
import { startWorker } from './worker.ts';

export interface ServerOptions {
  log: EventLog;
  credentials: Credentials;
  /** The store, or a thread, cannot be trusted any more: end the process, at once, with a code that tells. */
  onFatal: (error: Error) => void;
  /** Default: the machine's. A test holds it still, so that days pass while HTTP stays real. Only for a single worker. */
  clock?: Machine;
  /** Whether a database in memory has no thread of its own: starting one costs a test more than all else. Only for a single worker. */
  isStoreInline?: boolean;
}

export interface RunningServer {
  /** `http://<address>:<port>`, as bound. */
  url: string;
  /** What the first development account uses; present with `development` credentials. */
  development?: DevelopmentAccess;
  /**
   * Takes no more messages, gives running attempts up to `limitMs`, then closes everything. What was cut off is made
   * again at the next start. Idempotent.
   */
  stop(limitMs: Millis): Promise<void>;
}

/** Resolves once the server answers. Throws `CannotStart` for what the operator can mend. */
export async function startServer(config: Config, options: ServerOptions): Promise<RunningServer> {
  const opened: (() => Promise<unknown>)[] = [];
  try {
    return await start(config, options, opened);
  } catch (error) {
    for (const close of opened.reverse()) await close();
    throw error;
  }
}

/** Puts what closes each part into `opened`, in the order in which they start. */
async function start(
  config: Config,
  options: ServerOptions,
  opened: (() => Promise<unknown>)[],
): Promise<RunningServer> {
  const { log, credentials, onFatal, clock: heldClock, isStoreInline: isInline } = options;
  const randomness = createSystemRandomness();
  const create = credentials === 'development';
  const store = await openStore(config, { onFatal, create, waits: true, log, heldClock, isInline });
  const closeStore = once(() => store.close());
  opened.push(closeStore);
  await checkTokens(store, credentials, log);
  const sealer = openSealer(config, randomness, { create });
  const workers =
    config.workers === 1
      ? await startOne(config, { ...options, store, sealer })
      : await startThreads(config, { ...options, store, sealer });
  opened.push(() => workers.stop(0));
  if (config.workers > 1 && !store.connect) await closeStore(); // each worker has one of its own
  const administration = new StoredAdministration({
    store,
    clock: systemClock,
    randomness,
    sealer: () => sealer,
    accounts: workers.accounts,
  });
  const operatorSocket =
    credentials === 'own'
      ? await openOperatorSocket(config, announced(administration, workers.refreshAccounts), log)
      : undefined;
  if (operatorSocket) opened.push(() => operatorSocket.close());
  const url = await workers.listen();
  return {
    url,
    ...(workers.development && { development: workers.development }),
    stop: once(async (limitMs: Millis) => {
      await workers.stop(limitMs);
      await operatorSocket?.close();
      await closeStore();
    }),
  };
}

/** Those that deliver: one in this thread, or several in threads of their own. */
interface Workers {
  /** As the thread that starts them has them. */
  accounts: AccountsInMemory;
  development: DevelopmentAccess | undefined;
  /** Resolves when what has changed in the store is in force in all of them. */
  refreshAccounts: () => Promise<void>;
  /** Answers the URL. Throws `CannotStart`. */
  listen: () => Promise<string>;
  stop: (limitMs: Millis) => Promise<void>;
}

interface WorkersNeeds extends ServerOptions {
  store: OpenedStore;
  sealer: Sealer;
}

async function startOne(config: Config, { clock = systemClock, ...needs }: WorkersNeeds): Promise<Workers> {
  const worker = await startWorker(config, { ...needs, machine: clock, rank: 'first', isRecovered: false });
  const { accounts } = worker;
  return {
    accounts,
    development: needs.credentials === 'development' ? developmentAccess(accounts) : undefined,
    refreshAccounts: async () => {}, // who changes them changes them here
    listen: async () => (await worker.listen({ host: config.host, port: config.port, isShared: false })).url,
    stop: (limitMs) => worker.stop(limitMs),
  };
}

async function startThreads(config: Config, needs: WorkersNeeds): Promise<Workers> {
  const { store, sealer, credentials, log, onFatal } = needs;
  if (needs.clock) throw new Error('a clock that is held cannot pass to other threads');
  const accounts = await openAccounts(store, sealer, { credentials, clock: systemClock, isShared: false });
  const { encryptionKey } = sealer;
  const { connect } = store;
  // Once for all threads, before the first of them claims anything.
  if (connect) await releaseAll({ store, clock: systemClock, log });
  const threads = await Threads.start(config, {
    credentials,
    encryptionKey,
    log,
    onFatal,
    ...(connect && { connect }),
  });
  return {
    accounts,
    development: credentials === 'development' ? developmentAccess(accounts) : undefined,
    refreshAccounts: () => threads.refreshAccounts(),
    listen: () => threads.listen(),
    stop: (limitMs) => threads.stop(limitMs),
  };
}

/** A server serves without it too: then its operator stops it to change projects and tokens. */
async function openOperatorSocket(
  config: Config,
  administration: Administration,
  log: EventLog,
): Promise<OperatorSocket | undefined> {
  const database = databaseOf(config);
  // What a command line changes in a database of its own reaches every worker by way of that.
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
