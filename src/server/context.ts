/** What the parts of one worker share: its settings, its store, its clock, who may call, and where it may deliver. */

import { hostname } from 'node:os';
import type { Sealer, StoredAccounts } from '../accounts/accounts.ts';
import { type Credentials, openAccounts } from '../accounts/open-accounts.ts';
import { databaseOf, messageOf, type OpenedStore } from '../admin/open-store.ts';
import { Browsers } from '../api/edge/browsers.ts';
import type { OtherWorkers } from '../api/edge/other-workers.ts';
import type { VirtualTime } from '../api/route.ts';
import type { Config } from '../config/table.ts';
import { type AddressPolicy, parseAddressPolicy } from '../delivery/addresses/address-guard.ts';
import { type Resolver, resolverOf } from '../delivery/addresses/resolver.ts';
import type { WorkerId } from '../engine/model.ts';
import type { OperatorEventsOptions } from '../engine/operator-events/model.ts';
import type { Delivery, EventLog, Machine, Randomness } from '../engine/ports.ts';
import { DatabaseClock } from '../engine/workers/database-clock.ts';
import { SteadyClock } from '../engine/workers/steady-clock.ts';
import { randomBase58 } from '../protocol/ids.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { createSystemRandomness, systemClock } from '../system/system.ts';
import type { WorkerMetrics } from '../telemetry/metrics/worker-metrics.ts';
import { sampledLog } from '../telemetry/sampled-log.ts';
import { openOperatorEvents } from './operator-events.ts';

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

export interface WorkerContext extends WorkerOptions {
  config: Config;
  id: WorkerId;
  clock: DatabaseClock | SteadyClock;
  randomness: Randomness;
  addresses: AddressPolicy;
  resolver: Resolver;
  browsers: Browsers;
  accounts: StoredAccounts;
  /** Absent: the operator is told of nothing. */
  operatorEvents: OperatorEventsOptions | undefined;
}

/** Throws `CannotStart`. */
export async function openContext(config: Config, options: WorkerOptions): Promise<WorkerContext> {
  const { store, sealer, credentials, machine } = options;
  const log = sampledLog(options.log, systemClock);
  const isShared = databaseOf(config).kind === 'postgres';
  const clock = isShared ? new DatabaseClock(machine) : new SteadyClock(machine);
  const addresses = addressPolicyOf(config);
  const browsers = browsersOf(config, credentials);
  // First, since this may make a project, which accounts are to know.
  const events = await openOperatorEvents(config, { store, sealer, credentials, addresses, clock });
  const accounts = await openAccounts(store, sealer, { credentials, clock, isShared, log, dataDir: config.dataDir });
  return {
    ...options,
    config,
    id: `${hostname()}-${process.pid}-${randomBase58(8, sealer.randomBytes)}`,
    log,
    clock,
    randomness: createSystemRandomness(),
    addresses,
    resolver: resolverOf(config.workers),
    browsers,
    accounts,
    operatorEvents: events && { ...events, projectName: (id) => accounts.shownName(id) },
  };
}

function addressPolicyOf({ allowDestinations }: Config): AddressPolicy {
  try {
    return parseAddressPolicy(allowDestinations.join(','));
  } catch (error) {
    throw new CannotStart(messageOf(error), { cause: error });
  }
}

/** The rules for browsers. In development the token is no secret, so a page that passes these rules can do anything. */
function browsersOf({ allowOrigins, allowHosts }: Config, credentials: Credentials): Browsers {
  try {
    return new Browsers({ origins: allowOrigins, hosts: credentials === 'development' ? allowHosts : 'any' });
  } catch (error) {
    throw new CannotStart(`WAYPOST_ALLOW_ORIGINS: ${messageOf(error)}`, { cause: error });
  }
}
