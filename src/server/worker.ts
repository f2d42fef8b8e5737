/** One worker: accepts messages over HTTP and delivers them, on a store that its caller has opened. */

import { hostname } from 'node:os';
import type { Sealer, StoredAccounts } from '../accounts/accounts.ts';
import { type Credentials, openAccounts } from '../accounts/open-accounts.ts';
import { StoredTokens } from '../accounts/project-tokens.ts';
import { createApi } from '../api/app.ts';
import { Browsers } from '../api/browsers.ts';
import type { Listener } from '../api/listener.ts';
import type { OtherWorkers } from '../api/other-workers.ts';
import type { Services, VirtualTime } from '../api/route.ts';
import { openCellDriver } from '../cells/operate/cells.ts';
import { openCells } from '../cells/serve/open.ts';
import { PausedMoves } from '../cells/serve/paused-moves.ts';
import { DEVELOPMENT_ACCOUNTS } from '../config/development.ts';
import type { Config } from '../config/table.ts';
import { AddressGuard, type AddressPolicy, parseAddressPolicy } from '../delivery/address-guard.ts';
import { createDelivery, type DeliveryOptions } from '../delivery/delivery.ts';
import { checkDestination, DestinationCheck, type DestinationVerdict } from '../delivery/destination-check.ts';
import { type Resolver, resolverOf } from '../delivery/resolver.ts';
import { selfTest } from '../delivery/self-test.ts';
import type { Engine } from '../engine/commands.ts';
import { createEngine } from '../engine/create.ts';
import type { Recovery } from '../engine/deps.ts';
import type { Millis, ProjectId, WorkerId } from '../engine/model.ts';
import type { Clock, Delivery, EventLog, Machine, Randomness } from '../engine/ports.ts';
import { StoreUnavailable } from '../engine/store-errors.ts';
import { DatabaseClock } from '../engine/workers/database-clock.ts';
import { byTheWall, SteadyClock } from '../engine/workers/steady-clock.ts';
import { databaseOf, messageOf, type OpenedStore } from '../operations/open-store.ts';
import { untilAllKnow } from '../operations/socket/everywhere.ts';
import { randomBase58 } from '../protocol/ids.ts';
import type { Store } from '../store/store.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { openFilesMax } from '../system/open-files.ts';
import { createSystemRandomness, endOfTurn, systemClock } from '../system/system.ts';
import { readVersion } from '../system/version.ts';
import type { Reading } from '../telemetry/metrics/instruments.ts';
import type { WorkerMetrics } from '../telemetry/metrics/worker-metrics.ts';
import { sampledLog } from '../telemetry/sampled-log.ts';
import type { SpanRecorder } from '../telemetry/traces/span-recorder.ts';
import { readConsole } from './console-files.ts';
import { type Bound, type ListenAt, listen } from './listen.ts';
import { openOperatorEvents } from './operator-events.ts';
import { silentMaxWithin } from './silent-max.ts';
import { openTraces } from './traces.ts';

export interface WorkerOptions {
  store: OpenedStore;
  sealer: Sealer;
  credentials: Credentials;
  log: EventLog;
  /** Absent: nobody asks for them. */
  metrics?: WorkerMetrics | undefined;
  /** The machine's clock, which a test may stop. */
  machine: Machine;
  /** `first`: the worker that does the work which is done once for the process. The others leave that work to it. */
  rank: 'first' | 'other';
  /** Absent: this is the only worker of its process. */
  others?: OtherWorkers;
  /**
   * Whether workers of this process share an embedded store, and the process has already recovered that store for all.
   */
  isRecovered: boolean;
  around?: AroundTime;
  /** Tells other workers about tokens and signing keys that were changed here. A change is answered after it. */
  onAccountsChanged?: () => Promise<void>;
}

/** What comes with time that is held. */
export interface AroundTime {
  /** Dates the signatures, in place of `machine`: receivers compare their date with a clock of their own. */
  signatureClock: Pick<Machine, 'wallMs'>;
  /** Puts something around deliveries, which time waits for. */
  wrap: (delivery: Delivery) => Delivery;
  /** Lets requests pass time. */
  virtualTime?: VirtualTime;
}

export interface RunningWorker {
  id: WorkerId;
  accounts: StoredAccounts;
  /** Begins to accept requests; resolves to the bound address. Throws `CannotStart`. */
  listen(at: ListenAt): Promise<Bound>;
  /** The numbers of this worker; none without metrics. */
  readMetrics(): Promise<Reading>;
  /**
   * Accepts no more messages, gives running attempts up to `limitMs`, then ends all parts but the store. Idempotent.
   */
  stop(limitMs: Millis): Promise<void>;
}

/** When everything else has ended, clients with running requests get this long to read their answers. */
const LAST_ANSWERS_MS = 1000;

/** How long a host name that was resolved is not looked up again at publish. */
const NAMES_GOOD_MS = 60_000;
const NAMES_MAX = 10_000;

/** Of a statement in a cell whose project is to be served again. */
const PAUSED_MOVE_TIMEOUT_MS = 5_000;

/** When it resolves, the worker delivers, but does not listen yet. Throws `CannotStart`. */
export async function startWorker(config: Config, options: WorkerOptions): Promise<RunningWorker> {
  const { store, sealer, credentials, rank, metrics, onAccountsChanged, around, others } = options;
  const log = sampledLog(options.log, systemClock);
  const tellsAll = credentials === 'development';
  const randomness = createSystemRandomness();
  const database = databaseOf(config);
  const isShared = database.kind === 'postgres';
  const databaseClock = isShared ? new DatabaseClock(options.machine) : undefined;
  const clock = databaseClock ?? new SteadyClock(options.machine);
  const addresses = addressPolicyOf(config);
  const browsers = browsersOf(config, credentials);
  const events = await openOperatorEvents(config, { store, sealer, credentials, addresses, clock });
  const accounts = await openAccounts(store, sealer, { credentials, clock, isShared, log, dataDir: config.dataDir });
  if (rank === 'first') warnOf(config, addresses, log);
  const projectName = (id: ProjectId) => accounts.findProjectName(id) ?? `number ${id}`;
  const opened: (() => Promise<unknown>)[] = [];
  try {
    const resolver = resolverOf(config.workers);
    const dated = around && { ...byTheWall(clock), wallMs: () => around.signatureClock.wallMs() };
    const sender = await openDelivery(config, {
      addresses,
      resolver,
      clock: dated ?? clock,
      randomness,
      accounts,
      worker: others?.own ?? 0,
    });
    const delivery = around?.wrap(sender) ?? sender;
    opened.push(() => delivery.close());
    const id = `${hostname()}-${process.pid}-${randomBase58(8, sealer.randomBytes)}`;
    if (isShared) accounts.tellOfChanges(() => tellWorkers(config, { store, clock, self: id }));
    else if (onAccountsChanged) accounts.tellOfChanges(onAccountsChanged);
    const spans = await openTraces(config, { worker: id, log });
    if (spans) opened.push(() => spans.close());
    const recovery = recoveryOf(config, { accounts, databaseClock, isRecovered: options.isRecovered });
    const needs = {
      store,
      clock,
      randomness,
      delivery,
      log,
      metrics,
      operatorEvents: events && { ...events, projectName },
      spans,
      tellsAll,
      settings: { ...config, silentMax: silentMaxWithin(openFilesMax(), config) },
      worker: id,
      dropsExpired: isShared || rank === 'first',
      endOfTurn,
    };
    const { openCell, watchCell } = store;
    const pausedMoves =
      database.kind === 'postgres'
        ? new PausedMoves({
            ...{ moves: store.moves, worker: id, clock, log },
            nameOf: (projectId) => accounts.nameOf(projectId),
            openDriver: (cellId) =>
              openCellDriver({ ...database, ...sealer }, accounts.cells, cellId, PAUSED_MOVE_TIMEOUT_MS),
          })
        : undefined;
    const engine =
      openCell && recovery.kind === 'heartbeat'
        ? await openCells({
            ...needs,
            ...{ recovery, accounts, sealer, openCell, watchCell, pausedMoves, machine: options.machine },
          })
        : await createEngine({ ...needs, recovery });
    opened.push(() => engine.drain(0));
    metrics?.watch({
      engine,
      projectName,
      clock,
      spans,
      ...(rank === 'first' && { workers: config.workers }),
    });
    const { randomBytes } = sealer;
    const tokens = credentials === 'own' ? new StoredTokens({ store, accounts, clock, log, randomBytes }) : undefined;
    return new ListeningWorker({
      config,
      credentials,
      id,
      engine,
      accounts,
      tokens,
      delivery,
      clock,
      log,
      metrics,
      spans,
      addresses,
      resolver,
      browsers,
      others,
      virtualTime: around?.virtualTime,
    });
  } catch (error) {
    for (const close of opened.reverse()) await close();
    throw error;
  }
}

function recoveryOf(
  config: Config,
  {
    accounts,
    databaseClock,
    isRecovered,
  }: { accounts: StoredAccounts; databaseClock: DatabaseClock | undefined; isRecovered: boolean },
): Recovery {
  if (!databaseClock) return { kind: isRecovered ? 'none' : 'releaseAll' };
  const { workerTimeoutMs: timeoutMs } = config;
  return { kind: 'heartbeat', clock: databaseClock, timeoutMs, accounts };
}

/**
 * Throws `StoreUnavailable` when some workers do not confirm a change of tokens or keys. It is saved even then.
 */
async function tellWorkers(config: Config, needs: { store: Store; clock: Clock; self: WorkerId }): Promise<void> {
  const behind = await untilAllKnow({ ...needs, workerTimeoutMs: config.workerTimeoutMs });
  if (behind.length === 0) return;
  throw new StoreUnavailable(`tokens or keys have changed, but not all workers know: ${behind.join(', ')}`);
}

interface Parts {
  config: Config;
  credentials: Credentials;
  id: WorkerId;
  engine: Engine;
  accounts: StoredAccounts;
  /** `undefined` in development. */
  tokens: StoredTokens | undefined;
  delivery: Delivery;
  clock: Clock;
  log: EventLog;
  metrics: WorkerMetrics | undefined;
  spans: SpanRecorder | undefined;
  addresses: AddressPolicy;
  resolver: Resolver;
  browsers: Browsers;
  others: OtherWorkers | undefined;
  virtualTime: VirtualTime | undefined;
}

class ListeningWorker implements RunningWorker {
  readonly id: WorkerId;
  readonly accounts: StoredAccounts;
  readonly #parts: Parts;
  readonly #listener: Listener;
  #isReady = false;
  #stopping: Promise<void> | undefined;

  constructor(parts: Parts) {
    this.id = parts.id;
    this.accounts = parts.accounts;
    this.#parts = parts;
    this.#listener = makeApi(parts, () => this.#isReady);
  }

  async listen(at: ListenAt): Promise<Bound> {
    const bound = await listen(this.#listener, at);
    this.#isReady = this.#stopping === undefined;
    return bound;
  }

  async readMetrics(): Promise<Reading> {
    return (await this.#parts.metrics?.read()) ?? [];
  }

  stop(limitMs: Millis): Promise<void> {
    this.#isReady = false; // balancers see it at /readyz while running attempts end
    this.#stopping ??= this.#end(limitMs);
    return this.#stopping;
  }

  async #end(limitMs: Millis): Promise<void> {
    const { engine, delivery, metrics, spans } = this.#parts;
    await engine.drain(limitMs);
    const impatience = systemClock.startTimer(LAST_ANSWERS_MS, () => this.#listener.server.closeAllConnections());
    await this.#listener.close();
    impatience.cancel();
    await delivery.close();
    metrics?.close();
    await spans?.close();
  }
}

interface DeliveryNeeds {
  addresses: AddressPolicy;
  resolver: Resolver;
  clock: Machine;
  randomness: Randomness;
  accounts: StoredAccounts;
  worker: number;
}

/** Creates the delivery after a self-test: a delivery with the same options must refuse what is forbidden. */
async function openDelivery(
  config: Config,
  { addresses, resolver, clock, randomness, accounts, worker }: DeliveryNeeds,
): Promise<Delivery> {
  // The answer of a call becomes a message, so it may be as large as one.
  const runResponseBytesMax = Math.max(config.responseBytesMax, config.messageBytesMax);
  const options: DeliveryOptions = {
    clock,
    randomness,
    signingKey: (projectId) => accounts.signingKeysNow(projectId).current,
    addresses,
    resolver,
    timeoutMsMax: config.timeoutMaxMs,
    responseBytesMax: config.responseBytesMax,
    runResponseBytesMax,
    runFailureBytesMax: Math.max(config.failureResponseBytesMax, runResponseBytesMax),
    responseMemoryBytesMax: config.inFlightBytesMax,
    responseHeaderBytesMax: config.responseHeaderBytesMax,
    connectionsPerOriginMax: config.inFlightPerOriginMax, // an attempt has a connection to itself
    originsMax: config.originsMax,
    baggageHosts: config.baggageHosts.map((host) => host.toLowerCase()),
    verifyTls: config.verifyTls,
    worker,
    ...(config.region === '' ? {} : { region: config.region }),
  };
  await selfTest(options);
  return createDelivery(options);
}

function warnOf(config: Config, addresses: AddressPolicy, log: EventLog): void {
  if (addresses.kind === 'all') log.warn('all_destinations_allowed', { setting: 'WAYPOST_ALLOW_DESTINATIONS' });
  if (!config.verifyTls) log.warn('tls_not_verified', { setting: 'WAYPOST_VERIFY_TLS' });
}

/** The rules for browsers. In development the token is no secret, so a page that passes these rules can do anything. */
function browsersOf({ allowOrigins, allowHosts }: Config, credentials: Credentials): Browsers {
  try {
    return new Browsers({ origins: allowOrigins, hosts: credentials === 'development' ? allowHosts : 'any' });
  } catch (error) {
    throw new CannotStart(`WAYPOST_ALLOW_ORIGINS: ${messageOf(error)}`, { cause: error });
  }
}

function addressPolicyOf({ allowDestinations }: Config): AddressPolicy {
  try {
    return parseAddressPolicy(allowDestinations.join(','));
  } catch (error) {
    throw new CannotStart(messageOf(error), { cause: error });
  }
}

function makeApi(
  {
    config,
    credentials,
    engine,
    accounts,
    tokens,
    clock,
    log,
    metrics,
    addresses,
    resolver,
    browsers,
    others,
    virtualTime,
  }: Parts,
  isReady: () => boolean,
): Listener {
  try {
    return createApi({
      engine,
      accounts,
      tokens,
      clock: byTheWall(clock),
      others,
      virtualTime,
      log,
      checkDestination: destinationCheckOf(config, { addresses, resolver, clock }),
      quotas: {
        retriesDefault: config.retriesDefault,
        retriesMax: config.retriesMax,
        delayMsMax: config.delayMaxMs,
        timeoutMsMax: config.timeoutMaxMs,
      },
      limits: config,
      proxyHeaders: config.proxyHeaders,
      plainHeaders: { cloudEvents: config.forwardCloudEvents, baggage: config.baggageHosts.length > 0 },
      logsPageDefault: config.logsPageDefault,
      trustedProxies: config.trustedProxies,
      browsers,
      console: {
        version: readVersion(),
        developmentToken: credentials === 'development' ? DEVELOPMENT_ACCOUNTS[0].token : undefined,
        readFiles: () => readConsole(),
      },
      isReady,
      endOfTurn,
      answered: metrics && ((isPublish, status, durationMs) => metrics.answered(isPublish, status, durationMs)),
    });
  } catch (error) {
    if (error instanceof TypeError)
      throw new CannotStart(`WAYPOST_TRUSTED_PROXIES: ${error.message}`, { cause: error });
    throw error;
  }
}

/** The check of a destination at publish (contract M 5.2). The real guard is where deliveries connect. */
function destinationCheckOf(
  { resolveAtPublish }: Config,
  { addresses, resolver, clock }: Pick<Parts, 'addresses' | 'resolver' | 'clock'>,
): Services['checkDestination'] {
  const guard = new AddressGuard(addresses);
  const resolves = resolveAtPublish === 'auto' ? addresses.kind === 'deny' : resolveAtPublish === 'yes';
  if (!resolves) return () => (url) => refusalOf(checkDestination(url, guard));
  const check = new DestinationCheck({ guard, resolver, clock, namesMax: NAMES_MAX, rememberMs: NAMES_GOOD_MS });
  return (projectId) => (url) => {
    const verdict = check.check(url, projectId, clock.nowMs());
    return verdict instanceof Promise ? verdict.then(refusalOf) : refusalOf(verdict);
  };
}

function refusalOf(verdict: DestinationVerdict): string | undefined {
  switch (verdict.kind) {
    case 'ok':
      return undefined;
    case 'blocked':
      return `${verdict.reason} (${verdict.remedy})`;
    case 'unresolvable':
      return verdict.reason;
  }
}
