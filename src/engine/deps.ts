/** The dependencies of an engine, and the ways in which an engine recovers the claims of earlier workers. */

import type { Store } from '../store/store.ts';
import type { ClaimToken, Millis, WorkerId } from './model.ts';
import type { OperatorEventsOptions } from './operator-events/model.ts';
import type { Clock, Delivery, EventLog, Metrics, Observer, Randomness } from './ports.ts';
import type { EngineSettings } from './settings.ts';
import type { DatabaseClock } from './workers/database-clock.ts';
import type { ProjectFence } from './workers/project-fence.ts';

export interface EngineDeps {
  store: Store;
  clock: Clock;
  randomness: Randomness;
  delivery: Delivery;
  log: EventLog;
  /** Absent: no metrics are collected. */
  metrics?: Metrics | undefined;
  /** Absent: the operator is not notified of events. */
  operatorEvents?: OperatorEventsOptions | undefined;
  /** The exporter of traces. If present, each attempt is a span, and a message without a trace starts a trace. */
  spans?: Observer | undefined;
  /** Whether each failed attempt and each end of a run is logged, as in development. Default: only at level `debug`. */
  logsAll?: boolean;
  settings: EngineSettings;
  worker: WorkerId;
  /** Default: `releaseAll`. */
  recovery?: Recovery;
  /**
   * Whether this worker deletes expired rows. Default: yes. If several threads share an embedded store, one of them is
   * enough.
   */
  dropsExpired?: boolean;
  /**
   * Resolves once the event loop has handled pending work. Long work is divided into slices, and awaits this promise
   * between two slices. Absent: no pauses.
   */
  endOfTurn?: () => Promise<void>;
}

/** How a worker releases the claims of workers that have ended. */
export type Recovery =
  /** For the only worker of a store, which releases all existing claims when it starts. */
  | { kind: 'releaseAll' }
  /** For a thread: the process has released the claims before it started its threads, and all threads end together. */
  | { kind: 'none' }
  /** For one of several independent workers, which releases the claims of workers whose heartbeats have stopped. */
  | {
      kind: 'heartbeat';
      /** The same as `EngineDeps.clock`. */
      clock: DatabaseClock;
      /** Other workers may expire a worker that has sent no heartbeat for this long. */
      timeoutMs: Millis;
      /** Absent: the accounts are in another store. */
      accounts?: SharedAccounts;
      /** Absent: projects never move to another store. */
      projects?: ProjectFence;
      /**
       * Whether another engine of this worker works on this claim: the project may have moved since the claim was made.
       */
      isActiveElsewhere?: (claimToken: ClaimToken) => boolean;
    };

/** The projects, tokens and signing keys that this worker has in memory. Other workers may change them in the store. */
export interface SharedAccounts {
  /** The version in memory. */
  readonly version: number;
  refresh(): Promise<void>;
  /** Notes that the store has `version`, and that until `untilMs` (elapsed time) no other worker expires this worker. */
  noteNewest(version: number, untilMs: Millis): void;
  /** Notes that the version in the store could not be read. */
  noteUnknown(error: Error): void;
}
