/** Types of the store's operations about the workers that share the store. */
import type { Millis, ProjectId, WorkerId } from '../model.ts';

/** The response to a heartbeat, read in one snapshot. */
export interface HeartbeatResponse {
  /** The time of the database's clock. */
  wallMs: Millis;
  /** How far the workers' time is ahead of the database's clock, if this clock was set back. */
  leadMs: Millis;
  /** False if the worker is new or has expired since the previous heartbeat: then other workers may have its claims. */
  wasKnown: boolean;
  /** Whether other workers have missed their heartbeats or have left, and must be expired. */
  hasLate: boolean;
  /** The requested projects that are in this store and are not moving to another store. */
  here: readonly ProjectId[];
  /** The other workers that claim messages. A worker that is missing here no longer serves backlogs. */
  others: WorkerId[];
  /** The next due times of messages, schedules and waiters; undefined if there are none. */
  nextDueAtMs: Millis | undefined;
  nextScheduleAtMs: Millis | undefined;
  nextWaiterAtMs: Millis | undefined;
  /** Whether any message waits in an endpoint backlog. */
  hasBacklogs: boolean;
  /** Whether any message is claimed. */
  hasClaims: boolean;
  /** Whether an ended run still has messages. The run may have come with a project from another cell. */
  hasEndedRun: boolean;
  /** Changes whenever projects, tokens or signing keys change. */
  accountsVersion: number;
}

export interface WorkerState {
  timeoutMs: Millis;
  isLeaving: boolean;
  accountsVersion: number;
  /** Projects with attempts in flight, which may have moved to another store. */
  projects?: readonly ProjectId[];
  clock?: { nowMs: Millis; leadMs: Millis };
}
