/** What a store that several workers share tells of them: which live, and which claims have no worker any more. */
import type { Millis, ProjectId, WorkerId } from '../model.ts';

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
  hasBacklogs: boolean;
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
