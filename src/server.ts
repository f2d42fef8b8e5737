/** The composition root: the only file that knows all parts, and the order in which they start and end. */
import { hostname } from 'node:os';
import type { FastifyInstance } from 'fastify';
import { type Sealer, StoredAccounts, sealKeys } from './accounts.ts';
import type { SigningKeys } from './api/accounts.ts';
import { createApi } from './api/app.ts';
import type { CheckDestination } from './api/route.ts';
import { DEVELOPMENT_ACCOUNTS, isDevelopmentProject, isDevelopmentToken } from './config/development.ts';
import { SealBroken } from './config/sealing.ts';
import type { Config } from './config/table.ts';
import { AddressGuard, type AddressPolicy, parseAddressPolicy } from './delivery/address-guard.ts';
import { createDelivery, type DeliveryOptions } from './delivery/delivery.ts';
import { checkDestination, DestinationCheck, type DestinationVerdict } from './delivery/destination-check.ts';
import { systemResolver } from './delivery/resolver.ts';
import { selfTest } from './delivery/self-test.ts';
import type { Engine } from './engine/commands.ts';
import { createEngine, type Recovery } from './engine/create.ts';
import { DatabaseClock } from './engine/database-clock.ts';
import type { Millis } from './engine/model.ts';
import type { Clock, Delivery, EventLog, Randomness } from './engine/ports.ts';
import type { Store } from './engine/stores.ts';
import { CannotStart, databaseOf, messageOf, openSealer, openStore } from './open-store.ts';
import { listenForOperator, type OperatorSocket } from './operator/listen.ts';
import { socketPathOf } from './operator/socket-path.ts';
import { StoredAdministration } from './operator/stored.ts';
import { randomBase58 } from './protocol/ids.ts';
import { hashToken } from './protocol/token.ts';
import { createSystemRandomness, systemClock } from './system.ts';

/** `development`: the published ones, never saved. `own`: those that `waypost init` has saved. */
export type Credentials = 'development' | 'own';

export interface ServerOptions {
  log: EventLog;
  credentials: Credentials;
  /** The store cannot be trusted any more: end the process, at once, with a code that tells. */
  onFatal: (error: Error) => void;
  /** Default: the machine's. A test holds it still, so that days pass while HTTP stays real. */
  clock?: Clock;
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

export interface DevelopmentAccess {
  token: string;
  /** Those in force: published ones until somebody rotates them. */
  signingKeys: SigningKeys;
}

/** Callers whose requests still run when everything else has ended get this long to read their answers. */
const LAST_ANSWERS_MS = 1000;

/** How long a name that resolved well is not looked up again when a message is published to it. */
const NAMES_GOOD_MS = 60_000;
const NAMES_MAX = 10_000;

/** Resolves once the server answers. Throws `CannotStart` for what the operator can mend. */
export async function startServer(config: Config, options: ServerOptions): Promise<RunningServer> {
  const opened: { close(): Promise<unknown> }[] = [];
  try {
    return await start(config, options, opened);
  } catch (error) {
    for (const part of opened.reverse()) await part.close();
    throw error;
  }
}

/** Puts every part that must be closed into `opened`, in the order in which it starts. */
async function start(
  config: Config,
  { log, credentials, onFatal, clock: heldClock }: ServerOptions,
  opened: { close(): Promise<unknown> }[],
): Promise<RunningServer> {
  const randomness = createSystemRandomness();
  const isShared = databaseOf(config).kind === 'postgres';
  const machineClock = heldClock ?? systemClock;
  const databaseClock = isShared ? new DatabaseClock(machineClock) : undefined;
  const clock = databaseClock ?? machineClock;
  const addresses = addressPolicyOf(config);
  const store = await openStore(config, { onFatal, create: credentials === 'development', log, heldClock });
  opened.push(store);
  await checkTokens(store, credentials, log);
  const sealer = openSealer(config, randomness, { create: credentials === 'development' });
  const accounts = await openAccounts(store, sealer, { credentials, clock, isShared });

  const delivery = await openDelivery(config, { addresses, clock, randomness, accounts, log });
  opened.push(delivery);
  const worker = `${hostname()}-${process.pid}-${randomBase58(8, sealer.randomBytes)}`;
  const recovery: Recovery = databaseClock
    ? {
        kind: 'heartbeat',
        clock: databaseClock,
        timeoutMs: config.workerTimeoutMs,
        refreshAccounts: () => accounts.refresh(),
      }
    : { kind: 'releaseAll' };
  const engine = await createEngine({ store, clock, randomness, delivery, log, settings: config, worker, recovery });
  opened.push({ close: () => engine.drain(0) });
  const operatorSocket =
    credentials === 'own' ? await openOperatorSocket(config, { store, accounts, sealer, randomness, log }) : undefined;
  if (operatorSocket) opened.push(operatorSocket);

  let ready = false;
  const app = makeApi(config, { engine, accounts, clock, log, addresses, isReady: () => ready });
  opened.push(app);
  const url = await listen(app, config);
  ready = true;
  let stopping: Promise<void> | undefined;
  return {
    url,
    ...(credentials === 'development' ? { development: developmentAccess(accounts) } : {}),
    stop: (limitMs) => {
      ready = false; // balancers see it at /readyz while running attempts end
      stopping ??= end({ engine, app, operatorSocket, delivery, store }, limitMs);
      return stopping;
    },
  };
}

interface Parts {
  engine: Engine;
  app: FastifyInstance;
  operatorSocket: OperatorSocket | undefined;
  delivery: Delivery;
  store: Store;
}

async function end({ engine, app, operatorSocket, delivery, store }: Parts, limitMs: Millis): Promise<void> {
  await engine.drain(limitMs);
  const impatience = systemClock.startTimer(LAST_ANSWERS_MS, () => app.server.closeAllConnections());
  await app.close();
  impatience.cancel();
  await operatorSocket?.close();
  await delivery.close();
  await store.close();
}

/** Throws `CannotStart` when the store does not go with the credentials that are asked for. */
async function checkTokens(store: Store, credentials: Credentials, log: EventLog): Promise<void> {
  const [tokens, projects] = await Promise.all([store.listTokens(), store.listProjects()]);
  switch (credentials) {
    case 'development':
      if (tokens.length === 0) return;
      throw new CannotStart('this data folder has tokens of its own: use "waypost serve", or another --data-dir');
    case 'own':
      // A folder from development has projects too, but none of its own.
      if (projects.every(({ name }) => isDevelopmentProject(name))) {
        throw new CannotStart('there is no token yet: run "waypost init" first');
      }
      // All of them were revoked: what was accepted is still to be delivered.
      if (tokens.length === 0) log.warn('no_tokens', { reason: 'nobody can call; "waypost tokens create" makes one' });
      if (!tokens.some(({ tokenHash }) => isDevelopmentToken(tokenHash))) return;
      throw new CannotStart('the database holds a published development token: everybody knows it');
  }
}

/** Throws `CannotStart` when the encryption key is not the one of this store. */
async function openAccounts(
  store: Store,
  sealer: Sealer,
  { credentials, clock, isShared }: { credentials: Credentials; clock: Clock; isShared: boolean },
): Promise<StoredAccounts> {
  try {
    return await (credentials === 'own'
      ? StoredAccounts.open(store, sealer, clock, { isShared })
      : openDevelopmentAccounts(store, sealer));
  } catch (error) {
    if (error instanceof SealBroken) throw new CannotStart(error.message, { cause: error });
    throw error;
  }
}

/** The published tokens live in memory only, so that a data folder from development opens no door in production. */
async function openDevelopmentAccounts(store: Store, sealer: Sealer): Promise<StoredAccounts> {
  const nowMs = systemClock.nowMs();
  const admissions: { tokenHash: string; projectId: number }[] = [];
  for (const { name, token, signingKeys } of DEVELOPMENT_ACCOUNTS) {
    const { projectId } = await store.ensureProject(name, sealKeys(signingKeys, sealer), nowMs);
    admissions.push({ tokenHash: hashToken(token), projectId });
  }
  const accounts = await StoredAccounts.open(store, sealer, systemClock);
  for (const { tokenHash, projectId } of admissions) accounts.admit(tokenHash, projectId, 'full');
  return accounts;
}

function developmentAccess(accounts: StoredAccounts): DevelopmentAccess {
  const [{ token }] = DEVELOPMENT_ACCOUNTS;
  const caller = accounts.authenticate(hashToken(token));
  if (caller === undefined) throw new Error('the first development account has no access');
  return { token, signingKeys: accounts.signingKeysNow(caller.projectId) };
}

interface OperatorNeeds {
  store: Store;
  accounts: StoredAccounts;
  sealer: Sealer;
  randomness: Randomness;
  log: EventLog;
}

/** A server serves without it too: then its operator stops it to change projects and tokens. */
async function openOperatorSocket(
  config: Config,
  { store, accounts, sealer, randomness, log }: OperatorNeeds,
): Promise<OperatorSocket | undefined> {
  const administration = new StoredAdministration({
    store,
    clock: systemClock,
    randomness,
    sealer: () => sealer,
    accounts,
  });
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

interface DeliveryNeeds {
  addresses: AddressPolicy;
  clock: Clock;
  randomness: Randomness;
  accounts: StoredAccounts;
  log: EventLog;
}

/** Built only after a delivery with the same options has refused what it must. */
async function openDelivery(
  config: Config,
  { addresses, clock, randomness, accounts, log }: DeliveryNeeds,
): Promise<Delivery> {
  const options: DeliveryOptions = {
    clock,
    randomness,
    signingKey: (projectId) => accounts.signingKeysNow(projectId).current,
    addresses,
    timeoutMsMax: config.timeoutMaxMs,
    responseBytesMax: config.responseBytesMax,
    // What a call answers becomes a message, so it may be as large as one.
    runResponseBytesMax: Math.max(config.responseBytesMax, config.messageBytesMax),
    responseMemoryBytesMax: config.inFlightBytesMax,
    responseHeaderBytesMax: config.responseHeaderBytesMax,
    connectionsPerOriginMax: config.inFlightPerOriginMax, // an attempt has a connection to itself
    originsMax: config.originsMax,
    verifyTls: config.verifyTls,
    ...(config.region === '' ? {} : { region: config.region }),
  };
  await selfTest(options);
  if (addresses.kind === 'all') log.warn('all_destinations_allowed', { setting: 'WAYPOST_ALLOW_DESTINATIONS' });
  if (!config.verifyTls) log.warn('tls_not_verified', { setting: 'WAYPOST_VERIFY_TLS' });
  return createDelivery(options);
}

function addressPolicyOf({ allowDestinations }: Config): AddressPolicy {
  try {
    return parseAddressPolicy(allowDestinations.join(','));
  } catch (error) {
    throw new CannotStart(messageOf(error), { cause: error });
  }
}

interface ApiNeeds {
  engine: Engine;
  accounts: StoredAccounts;
  clock: Clock;
  log: EventLog;
  addresses: AddressPolicy;
  isReady: () => boolean;
}

function makeApi(config: Config, { engine, accounts, clock, log, addresses, isReady }: ApiNeeds): FastifyInstance {
  try {
    return createApi({
      engine,
      accounts,
      clock,
      log,
      checkDestination: destinationCheckOf(config, addresses, clock),
      quotas: {
        retriesDefault: config.retriesDefault,
        retriesMax: config.retriesMax,
        delayMsMax: config.delayMaxMs,
        timeoutMsMax: config.timeoutMaxMs,
      },
      limits: config,
      proxyHeaders: config.proxyHeaders,
      logsPageDefault: config.logsPageDefault,
      trustedProxies: config.trustedProxies,
      isReady,
    });
  } catch (error) {
    if (error instanceof TypeError)
      throw new CannotStart(`WAYPOST_TRUSTED_PROXIES: ${error.message}`, { cause: error });
    throw error;
  }
}

/** What publishes are told at once (messaging.md 5.2). The guard itself stands where deliveries connect. */
function destinationCheckOf({ resolveAtPublish }: Config, addresses: AddressPolicy, clock: Clock): CheckDestination {
  const guard = new AddressGuard(addresses);
  const resolves = resolveAtPublish === 'auto' ? addresses.kind === 'deny' : resolveAtPublish === 'yes';
  if (!resolves) return (url) => refusalOf(checkDestination(url, guard));
  const check = new DestinationCheck({
    guard,
    resolver: systemResolver,
    namesMax: NAMES_MAX,
    rememberMs: NAMES_GOOD_MS,
  });
  return (url) => {
    const verdict = check.check(url, clock.nowMs());
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

async function listen(app: FastifyInstance, { host, port }: Config): Promise<string> {
  try {
    await app.listen({ host, port });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') {
      throw new CannotStart(`port ${port} on ${host} is in use: choose another with --port or PORT`, { cause: error });
    }
    if (code !== undefined) throw new CannotStart(`cannot listen on ${host}, port ${port} (${code})`, { cause: error });
    throw error;
  }
  const address = app.server.address();
  if (address === null || typeof address === 'string') throw new Error('the server listens on no port');
  return `http://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`;
}
