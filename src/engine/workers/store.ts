/** What a store that several workers share tells of them: who lives, and whose claims are nobody's any more. */
import type { ClaimRef, Millis, WorkerId } from '../model.ts';

/** What a worker hears when it sends a heartbeat, all of one moment. */
export interface HeartbeatAnswer {
  /** What the database's clock shows. */
  wallMs: Millis;
  /** How far the time that the workers go by is ahead of it, where it was set back. */
  leadMs: Millis;
  /** False for the first heartbeat, and when the worker was declared dead since the last: then its claims are others'. */
  wasKnown: boolean;
  /** Whether others have missed their heartbeats or have left: somebody is to expire them. */
  hasLate: boolean;
  /** The others that claim messages. Who is missing now reads no line any more. */
  others: WorkerId[];
  /** When something is due next, of messages, schedules and waiters; `undefined`: nothing is. */
  nextDueAtMs: Millis | undefined;
  nextScheduleAtMs: Millis | undefined;
  nextWaiterAtMs: Millis | undefined;
  /** Another one whenever projects, tokens or signing keys have changed. */
  accountsVersion: number;
}

export interface WorkerState {
  timeoutMs: Millis;
  isLeaving: boolean;
  accountsVersion: number;
  known?: { nowMs: Millis; leadMs: Millis };
}

export interface WorkerStore {
  /**
   * Says that `worker` lives; from `timeoutMs` after its last heartbeat on, by the time that they all go by, any other may declare
   * it dead. One that is leaving finishes what it has and begins nothing. `accountsVersion`: what it admits callers by, and
   * signs. `known`: what the worker takes for that time, and for its lead; absent before the first heartbeat.
   */
  heartbeat(args: WorkerState & { worker: WorkerId }): Promise<HeartbeatAnswer>;
  /**
   * Workers that are not late at `nowMs` and have not said yet that they go by accounts as new as `accountsVersion`; default: as
   * they are now, which is answered.
   */
  workersBehind(args: { accountsVersion?: number }): Promise<{ accountsVersion: number; behind: WorkerId[] }>;
  /** Declares those dead that are late at `nowMs`, or have left; answers whom. Each is answered to one worker only. */
  expireWorkers(args: { nowMs: Millis }): Promise<WorkerId[]>;
  /** Up to `limit` claims of workers that are not known, or not any more: to be released. */
  orphanedClaims(args: { limit: number }): Promise<ClaimRef[]>;
  /** All claims in the name of `worker`. */
  claimsOf(args: { worker: WorkerId }): Promise<ClaimRef[]>;
  /** The worker has ended: the next one that sends a heartbeat hears of it, without waiting for the time to be over. */
  leave(args: { worker: WorkerId }): Promise<void>;
}
