/** The types of the settings and services that the workers of a process, and the modules of one worker, share. */
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
  /**
   * Called when the store or a thread can no longer be trusted. This function must end the process at once, with a
   * non-zero exit code.
   */
  onFatal: (error: Error) => void;
  /** The metrics of the only worker. Absent if metrics are disabled, or if several workers have their own metrics. */
  metrics?: WorkerMetrics | undefined;
  /**
   * Default: the machine's clock. A test can pass a clock that the test stops and advances, while HTTP runs in real time.
   * Only for a single worker.
   */
  clock?: Machine;
  /** Only for a single worker. */
  testClockOptions?: TestClockOptions;
}

/** The options with which a worker starts. */
export interface WorkerOptions
  extends Pick<ServerContext, 'config' | 'store' | 'sealer' | 'credentials' | 'log' | 'metrics' | 'testClockOptions'> {
  /** The machine's clock, which a test may stop. */
  machine: Machine;
  /** The worker of rank `first` also does the work that is needed once per process. */
  rank: 'first' | 'other';
  /** Absent if this is the only worker of its process. */
  others?: OtherWorkers;
  /** Whether the process has already recovered the embedded store for all its workers. */
  isRecovered: boolean;
  /**
   * Notifies other workers of tokens and signing keys that this worker has changed. Resolves when these workers use the
   * change.
   */
  onAccountsChanged?: () => Promise<void>;
}

/** Options for a server with a clock that tests control. */
export interface TestClockOptions {
  /** The clock of signatures. Real time, because receivers compare the date of a signature with their own clock. */
  signatureClock: Pick<Machine, 'wallMs'>;
  /** Wraps the delivery, so that the clock waits for attempts. */
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
  /** Absent if operator events are disabled. */
  operatorEvents: OperatorEventsOptions | undefined;
}
