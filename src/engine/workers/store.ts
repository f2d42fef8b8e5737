/** What a store that several workers share tells of them: which live, and which claims have no worker any more. */
import type { ClaimRef, Millis, ProjectId, WorkerId } from '../model.ts';

/** The answer to a heartbeat, all of one moment. */
export interface HeartbeatAnswer {
  /** What the database's clock shows. */
  wallMs: Millis;
  /** How far the workers' time is ahead of the database's clock, when that was set back. */
  leadMs: Millis;
  /** False for the first heartbeat, and when the worker was expired since the last: then others may have its claims. */
  wasKnown: boolean;
  /** Whether others have missed their heartbeats or have left: one of the workers must expire them. */
  hasLate: boolean;
  /** Those of the projects asked for that are in the store, and not on their way to another one. */
  here: readonly ProjectId[];
  /** The other workers that claim messages. One that is missing here serves no line any more. */
  others: WorkerId[];
  /** When something is due next, of messages, schedules and waiters; `undefined`: nothing is. */
  nextDueAtMs: Millis | undefined;
  nextScheduleAtMs: Millis | undefined;
  nextWaiterAtMs: Millis | undefined;
  /** Whether any message waits in a line of a busy origin. */
  hasLines: boolean;
  /** Whether any message is claimed. */
  hasClaims: boolean;
  /** Whether any run that is over has messages left: it may have come with a project from another cell. */
  hasEnding: boolean;
  /** Changes whenever projects, tokens or signing keys change. */
  accountsVersion: number;
}

export interface WorkerState {
  timeoutMs: Millis;
  isLeaving: boolean;
  accountsVersion: number;
  /** Projects with attempts under way, which may have moved to another store. */
  projects?: readonly ProjectId[];
  known?: { nowMs: Millis; leadMs: Millis };
}

export interface WorkerStore {
  /**
   * Says that `worker` lives. When `timeoutMs` have passed since its last heartbeat, in the time that all workers
   * share, any other may expire it. `isLeaving`: it finishes what it has and begins nothing. `accountsVersion`: of the
   * accounts by which it admits callers and signs. `known`: that time and its lead as the worker has them; absent
   * before the first heartbeat.
   */
  heartbeat(args: WorkerState & { worker: WorkerId }): Promise<HeartbeatAnswer>;
  /**
   * Workers that are not late and have not reported yet that they use accounts as new as `accountsVersion`. Default: the
   * present version, which is answered.
   */
  workersBehind(args: { accountsVersion?: number }): Promise<{ accountsVersion: number; behind: WorkerId[] }>;
  /**
   * Expires the workers that are late at `nowMs` or have left, and answers which. Only one caller gets each of them.
   * `isTold`: of those that are late it saves that the operator is to be told.
   */
  expireWorkers(args: { nowMs: Millis; isTold?: boolean }): Promise<WorkerId[]>;
  /** Up to `limit` claims of workers that the store does not know, or knows no more; the caller releases them. */
  orphanedClaims(args: { limit: number }): Promise<ClaimRef[]>;
  /** All claims in the name of `worker`. */
  claimsOf(args: { worker: WorkerId }): Promise<ClaimRef[]>;
  /** The worker has ended: the next heartbeat of another one reports it, without waiting for the timeout. */
  leave(args: { worker: WorkerId }): Promise<void>;
}
