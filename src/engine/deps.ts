/** What is an engine made of, and how does it recover what earlier workers left in its store? */

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
  /** Absent: nobody asks for them. */
  metrics?: Metrics | undefined;
  /** Absent: the operator is told of nothing. */
  operatorEvents?: OperatorEventsOptions | undefined;
  /** Tells a collector of traces; present: each attempt is a span of its own, and what begins without a trace begins one. */
  spans?: Observer | undefined;
  /** Whether each failed attempt and each end of a run is logged, as in development. Default: only at level `debug`. */
  tellsAll?: boolean;
  settings: EngineSettings;
  worker: WorkerId;
  /** Default: `releaseAll`. */
  recovery?: Recovery;
  /**
   * Whether it drops what is past its retention time. Default: yes. Of the threads on an embedded store, one is enough.
   */
  dropsExpired?: boolean;
  /**
   * Resolves once the event loop has handled what came meanwhile. Long work awaits it between slices. Absent: no
   * breaks.
   */
  endOfTurn?: () => Promise<void>;
}

/** How a worker finds the claims in the store whose worker is gone. */
export type Recovery =
  /** It is the store's only worker: it releases all claims that are there when it starts. */
  | { kind: 'releaseAll' }
  /** The process that starts it has released them. Other workers of that process may run beside it; all end together. */
  | { kind: 'none' }
  /** Other workers start and stop independently of it: it releases the claims of those whose heartbeats have stopped. */
  | {
      kind: 'heartbeat';
      /** The same as `EngineDeps.clock`. */
      clock: DatabaseClock;
      /** A worker without a heartbeat for this long may be expired by the others. */
      timeoutMs: Millis;
      /** Absent: another store has them. */
      accounts?: SharedAccounts;
      /** Absent: projects stay in this store. */
      projects?: ProjectFence;
      /** Whether another engine of this worker has the message of this claim: its project has moved meanwhile. */
      isHeldElsewhere?: (claimToken: ClaimToken) => boolean;
    };

/** Projects, tokens and signing keys as this worker has them in memory. Other workers may change them in the store. */
export interface SharedAccounts {
  /** Of what is in memory. */
  readonly version: number;
  refresh(): Promise<void>;
  /**
   * The store had `version` when it was asked; until `untilMs`, as `elapsedMs` counts, no other worker expires this
   * one.
   */
  noteNewest(version: number, untilMs: Millis): void;
  /** The store could not be asked, or read. */
  noteUnknown(error: Error): void;
}
