/** The request of a worker for messages, and the answer. */
import type { BacklogKey } from '../lanes/backlog-key.ts';
import type { Claimed, ClaimToken, MessageKey, Millis, ProjectId, WorkerId } from '../model.ts';

/** How many more attempts each project may start; `defaultCapacity` for a project that is not named. */
export interface ProjectCapacities {
  capacityByProject: Record<ProjectId, number>;
  defaultCapacity: number;
}

/** Which project has the next turn at the due index. */
export interface RotationState {
  /** The project that had the last turn. */
  after: ProjectId;
  /** All projects with messages in the due index, by id, as an earlier claim found them; absent: this claim reads them. */
  seen?: { atMs: Millis; projects: DueProject[] } | undefined;
}

/** A project with messages in the due index, and the first of these. */
export interface DueProject {
  id: ProjectId;
  dueAtMs: Millis;
  key: MessageKey;
}

export interface ClaimRequest {
  worker: WorkerId;
  /** Claims made in this transaction get `firstToken`, `firstToken + 1`, …; the caller owns `limit` of them. */
  firstToken: ClaimToken;
  /** No more than this many messages, those in backlogs included. */
  limit: number;
  /** No more than this many body bytes, but at least one message, unless `isStrict`: then another claim may have exceeded its own. */
  bytesMax: number;
  isStrict?: boolean;
  /** How many more attempts each busy origin may start; `defaultCapacity` for an origin that is not named. */
  capacityByOrigin: Record<string, number>;
  defaultCapacity: number;
  /** Lines that have less room than their origin. */
  capacityByBacklog?: Record<BacklogKey, number>;
  /** Absent: any number for each project. */
  projects?: ProjectCapacities;
  /** How many more attempts backlogs that are not in `proven` may start: `slots` in all, and by project; absent: any number. */
  unknown?: ProjectCapacities & { slots: number; healthy: BacklogKey[] };
  /** Whether to look at the due index and the keys' wait lists at all; false when only messages in backlogs are asked for. */
  due: boolean;
  /**
   * Projects take turns at the due index; absent: messages are taken in due order, which costs less and makes no difference while a
   * claim takes all that is due.
   */
  rotation?: RotationState | undefined;
  /** Whether the keys' wait lists come before the due index. They take turns, which matters when slots are few. */
  lanesFirst: boolean;
  /** Whether any backlog may have a backlog: then a due message joins the backlog of its backlog. */
  hasBacklogs?: boolean;
  /** Lines whose messages may start now, each up to its room. */
  backlogsToServe: BacklogKey[];
  /** The number of backlogs, the first ones, whose projects are not far behind: these may take all slots. */
  freshBacklogs?: number;
  /** Whether the due index is served before `backlogsToServe`, not after. */
  dueFirst?: boolean;
}

/** With the time at which this attempt was due: for a retry, later than for the first attempt. */
export interface ClaimedDue extends Claimed {
  dueAtMs: Millis;
}

export interface ClaimResult {
  /** Sorted by due time, then key. */
  claimed: ClaimedDue[];
  /** Lines that messages have joined because they had no room. */
  waitingBacklogs: BacklogKey[];
  /** Lines of `backlogsToServe` without a backlog by now. */
  emptied: BacklogKey[];
  /** When the next message of the due index or a wait list is due; may be in the past when `limit` was reached. */
  nextDueAtMs: Millis | undefined;
  /** Other transactions have locked what is due. To ask again at once would only slow them. */
  isLocked?: boolean;
  /** For the next claim, if projects took turns. */
  rotation?: RotationState | undefined;
}
