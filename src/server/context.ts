/** The settings, store, clock, accounts and addresses that the workers of a process, and the parts of one worker, share. */
import type { Sealer, StoredAccounts } from '../accounts/accounts.ts';
import type { Credentials } from '../accounts/open-accounts.ts';
import type { OpenedStore } from '../admin/open-store.ts';
import type { Browsers } from '../api/edge/browsers.ts';
import type { OtherWorkers } from '../api/edge/other-workers.ts';
import type { VirtualTime } from '../api/route.ts';
import type { Config } from '../config/table.ts';
import type { AddressPolicy } from '../delivery/addresses/address-guard.ts';
import type { Resolver } from '../delivery/addresses/resolver.ts';
import type { WorkerId } from '../engine/model.ts';
import type { OperatorEventsOptions } from '../engine/operator-events/model.ts';
import type { Delivery, EventLog, Machine, Randomness } from '../engine/ports.ts';
import type { DatabaseClock } from '../engine/workers/database-clock.ts';
import type { SteadyClock } from '../engine/workers/steady-clock.ts';
import type { WorkerMetrics } from '../telemetry/metrics/worker-metrics.ts';

export interface ServerContext {
  config: Config;
  store: OpenedStore;
  sealer: Sealer;
  credentials: Credentials;
  log: EventLog;
  /** Called when the store or a thread can no longer be trusted: end the process at once, with an exit code that says so. */
  onFatal: (error: Error) => void;
  /** Of the only worker. Absent: nobody reads them, or each of several workers has its own. */
  metrics?: WorkerMetrics | undefined;
  /**
   * Default: the machine's clock. A test can stop it and move it by days, while HTTP stays real. Only for a single
   * worker.
   */
  clock?: Machine;
  /** Only for a single worker. */
  around?: AroundTime;
}

/** What a worker starts with. */
export interface WorkerOptions
  extends Pick<ServerContext, 'config' | 'store' | 'sealer' | 'credentials' | 'log' | 'metrics' | 'around'> {
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
  /** Notifies other workers about tokens and signing keys that were changed here, before the change is reported as done. */
  onAccountsChanged?: () => Promise<void>;
}

/** The additions for a server with a stopped clock. */
export interface AroundTime {
  /** Dates the signatures instead of `machine`: receivers compare the date with their own clock. */
  signatureClock: Pick<Machine, 'wallMs'>;
  /** Wraps deliveries, so that the clock waits for them. */
  wrap: (delivery: Delivery) => Delivery;
  /** Lets requests advance the clock. */
  virtualTime?: VirtualTime;
}

export interface WorkerContext extends WorkerOptions {
  id: WorkerId;
  clock: DatabaseClock | SteadyClock;
  randomness: Randomness;
  addresses: AddressPolicy;
  resolver: Resolver;
  browsers: Browsers;
  accounts: StoredAccounts;
  /** Absent: operator events are disabled. */
  operatorEvents: OperatorEventsOptions | undefined;
}
