/** Starts one worker, which accepts messages over HTTP and delivers them, on a store that its caller has opened. */
import { hostname } from 'node:os';
import type { StoredAccounts } from '../accounts/accounts.ts';
import { type Credentials, openAccounts } from '../accounts/open-accounts.ts';
import { databaseOf, messageOf } from '../admin/open-store.ts';
import { waitForConfirmations } from '../admin/socket/wait-for-confirmations.ts';
import { Browsers } from '../api/edge/browsers.ts';
import type { Listener } from '../api/edge/listener.ts';
import { openEngine } from '../cells/serve/open.ts';
import type { Config } from '../config/table.ts';
import { type AddressPolicy, parseAddressPolicy } from '../delivery/addresses/address-guard.ts';
import { resolverOf } from '../delivery/addresses/resolver.ts';
import type { Engine } from '../engine/commands.ts';
import type { Recovery } from '../engine/deps.ts';
import type { Millis, WorkerId } from '../engine/model.ts';
import type { Delivery } from '../engine/ports.ts';
import { StoreUnavailable } from '../engine/store-errors.ts';
import { DatabaseClock } from '../engine/workers/database-clock.ts';
import { SteadyClock } from '../engine/workers/steady-clock.ts';
import { randomBase58 } from '../protocol/ids.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { openFilesMax } from '../system/open-files.ts';
import { createSystemRandomness, endOfTurn, systemClock } from '../system/system.ts';
import type { Reading } from '../telemetry/metrics/instruments.ts';
import { sampledLog } from '../telemetry/sampled-log.ts';
import type { SpanRecorder } from '../telemetry/traces/span-recorder.ts';
import { createWorkerApi } from './api.ts';
import type { WorkerContext, WorkerOptions } from './context.ts';
import { openDelivery } from './delivery.ts';
import { type BoundAddress, type ListenAddress, listen } from './listen.ts';
import { openOperatorEvents } from './operator-events.ts';
import { limitSilentMax } from './silent-max.ts';
import { openTraces } from './traces.ts';

export interface RunningWorker {
  id: WorkerId;
  accounts: StoredAccounts;
  /** Starts to accept requests; resolves to the bound address. Throws `CannotStart`. */
  listen(at: ListenAddress): Promise<BoundAddress>;
  /** The metrics of this worker; empty if metrics are disabled. */
  readMetrics(): Promise<Reading>;
  /** Accepts no more messages, waits up to `limitMs` for attempts, then closes everything but the store. Idempotent. */
  stop(limitMs: Millis): Promise<void>;
}

/** After the engine has stopped, clients with open requests have this long to receive their responses. */
const LAST_RESPONSES_MS = 1000;

/** Resolves when the worker delivers; the worker does not listen yet. Throws `CannotStart`. */
export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  const context = await openContext(options);
  const { config, accounts, clock, id, log, metrics, rank } = context;
  if (rank === 'first') warnAboutSettings(context);
  const opened: (() => Promise<unknown>)[] = [];
  try {
    const delivery = await openDelivery(context);
    opened.push(() => delivery.close());
    const notifyOthers = accountsNotifier(context);
    if (notifyOthers) accounts.onChange(notifyOthers);
    const spans = await openTraces(config, { worker: id, log });
    if (spans) opened.push(() => spans.close());
    const engine = await startEngine(context, delivery, spans);
    opened.push(() => engine.drain(0));
    const processMetrics = rank === 'first' && { workers: config.workers };
    metrics?.setSources({
      engine,
      projectName: (project) => accounts.displayName(project),
      clock,
      spans,
      ...processMetrics,
    });
    return new ListeningWorker(context, engine, delivery, spans);
  } catch (error) {
    for (const close of opened.reverse()) await close();
    throw error;
  }
}

/** Throws `CannotStart`. */
async function openContext(options: WorkerOptions): Promise<WorkerContext> {
  const { config, store, sealer, credentials, machine } = options;
  const log = sampledLog(options.log, systemClock);
  const isShared = databaseOf(config).kind === 'postgres';
  const clock = isShared ? new DatabaseClock(machine) : new SteadyClock(machine);
  const addresses = addressPolicyOf(config);
  const browsers = browsersOf(config, credentials);
  // Operator events are opened before the accounts are read, because the accounts must include the project of the events.
  const events = await openOperatorEvents({ ...options, addresses, clock });
  const accounts = await openAccounts(store, sealer, { credentials, clock, isShared, log, dataDir: config.dataDir });
  return {
    ...options,
    id: `${hostname()}-${process.pid}-${randomBase58(8, sealer.randomBytes)}`,
    log,
    clock,
    randomness: createSystemRandomness(),
    addresses,
    resolver: resolverOf(config.workers),
    browsers,
    accounts,
    operatorEvents: events && { ...events, projectName: (id) => accounts.displayName(id) },
  };
}

function addressPolicyOf({ allowDestinations }: Config): AddressPolicy {
  try {
    return parseAddressPolicy(allowDestinations.join(','));
  } catch (error) {
    throw new CannotStart(messageOf(error), { cause: error });
  }
}

/** The rules for browsers. In development the token is public: only these rules keep web pages of other origins out. */
function browsersOf({ allowOrigins, allowHosts }: Config, credentials: Credentials): Browsers {
  try {
    return new Browsers({ origins: allowOrigins, hosts: credentials === 'development' ? allowHosts : 'any' });
  } catch (error) {
    throw new CannotStart(`WAYPOST_ALLOW_ORIGINS: ${messageOf(error)}`, { cause: error });
  }
}

function warnAboutSettings({ config, addresses, log }: WorkerContext): void {
  if (addresses.kind === 'all') log.warn('all_destinations_allowed', { setting: 'WAYPOST_ALLOW_DESTINATIONS' });
  if (!config.verifyTls) log.warn('tls_not_verified', { setting: 'WAYPOST_VERIFY_TLS' });
}

/**
 * Returns the function that notifies other workers of changed tokens and keys, or undefined if there are no other
 * workers.
 */
function accountsNotifier({
  config,
  clock,
  store,
  id,
  onAccountsChanged,
}: WorkerContext): (() => Promise<void>) | undefined {
  if (!(clock instanceof DatabaseClock)) return onAccountsChanged;
  return async () => {
    const behind = await waitForConfirmations(store, clock, config.workerTimeoutMs, id);
    if (behind.length === 0) return;
    throw new StoreUnavailable(`tokens or keys have changed, but not all workers know: ${behind.join(', ')}`);
  };
}

function startEngine(context: WorkerContext, delivery: Delivery, spans: SpanRecorder | undefined): Promise<Engine> {
  const { config, credentials, rank, clock, id, store, randomness, log, metrics, operatorEvents } = context;
  const engine = {
    ...{ store, clock, randomness, delivery, log, metrics, operatorEvents, spans, worker: id, endOfTurn },
    logsAll: credentials === 'development',
    settings: { ...config, silentMax: limitSilentMax(openFilesMax(), config) },
    recovery: recoveryOf(context),
    dropsExpired: clock instanceof DatabaseClock || rank === 'first',
  };
  return openEngine(engine, context);
}

function recoveryOf({ config, clock, accounts, isRecovered }: WorkerContext): Recovery {
  if (!(clock instanceof DatabaseClock)) return { kind: isRecovered ? 'none' : 'releaseAll' };
  return { kind: 'heartbeat', clock, timeoutMs: config.workerTimeoutMs, accounts };
}

class ListeningWorker implements RunningWorker {
  readonly id: WorkerId;
  readonly accounts: StoredAccounts;
  readonly #context: WorkerContext;
  readonly #engine: Engine;
  readonly #delivery: Delivery;
  readonly #spans: SpanRecorder | undefined;
  readonly #listener: Listener;
  #isReady = false;
  #stopping: Promise<void> | undefined;

  constructor(context: WorkerContext, engine: Engine, delivery: Delivery, spans: SpanRecorder | undefined) {
    this.id = context.id;
    this.accounts = context.accounts;
    this.#context = context;
    this.#engine = engine;
    this.#delivery = delivery;
    this.#spans = spans;
    this.#listener = createWorkerApi(context, engine, () => this.#isReady);
  }

  async listen(at: ListenAddress): Promise<BoundAddress> {
    const bound = await listen(this.#listener, at);
    this.#isReady = this.#stopping === undefined;
    return bound;
  }

  async readMetrics(): Promise<Reading> {
    return (await this.#context.metrics?.read()) ?? [];
  }

  stop(limitMs: Millis): Promise<void> {
    this.#isReady = false; // load balancers see this at /readyz while attempts in flight end
    this.#stopping ??= this.#shutDown(limitMs);
    return this.#stopping;
  }

  async #shutDown(limitMs: Millis): Promise<void> {
    await this.#engine.drain(limitMs);
    const closeTimer = systemClock.startTimer(LAST_RESPONSES_MS, () => this.#listener.server.closeAllConnections());
    await this.#listener.close();
    closeTimer.cancel();
    await this.#delivery.close();
    this.#context.metrics?.close();
    await this.#spans?.close();
  }
}
