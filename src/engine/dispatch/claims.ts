/** The request of a worker for messages, and its result. */
import type { BacklogKey } from '../lanes/backlog-key.ts';
import type { Claimed, ClaimToken, MessageKey, Millis, ProjectId, WorkerId } from '../model.ts';

/**
 * How many more attempts each project may start; `defaultCapacity` is for each project that `capacityByProject` does not
 * name.
 */
export interface ProjectCapacities {
  capacityByProject: Record<ProjectId, number>;
  defaultCapacity: number;
}

/** The position of the project rotation in the due index. */
export interface RotationState {
  /** The project that was served last. */
  after: ProjectId;
  /** All projects with messages in the due index, by id, as seen by an earlier claim. Absent: this claim reads them. */
  seen?: { atMs: Millis; projects: DueProject[] } | undefined;
}

/** A project with messages in the due index, and the first of its messages. */
export interface DueProject {
  id: ProjectId;
  dueAtMs: Millis;
  key: MessageKey;
}

export interface ClaimRequest {
  worker: WorkerId;
  /**
   * The claims of this transaction get the tokens `firstToken`, `firstToken + 1`, …; the caller has reserved `limit`
   * tokens.
   */
  firstToken: ClaimToken;
  /** The maximum number of messages, including messages from backlogs. */
  limit: number;
  /**
   * The maximum of body bytes. One message may exceed this maximum, unless `isStrict` is set: then another pending claim
   * may have returned a message that exceeds the maximum of that claim.
   */
  bytesMax: number;
  isStrict?: boolean;
  /** How many more attempts each busy origin may start; `defaultCapacity` is for each origin that is not named here. */
  capacityByOrigin: Record<string, number>;
  defaultCapacity: number;
  /** Backlogs that have less capacity than their origin. */
  capacityByBacklog?: Record<BacklogKey, number>;
  /** Absent: no limit for a project. */
  projects?: ProjectCapacities;
  /**
   * How many more attempts backlogs that are not in `healthy` may start: `slots` in all, and a number for each project.
   * Absent: no limit.
   */
  unknown?: ProjectCapacities & { slots: number; healthy: BacklogKey[] };
  /** Whether to claim from the due index and the wait lists of flow-control keys; false: only from backlogs. */
  due: boolean;
  /**
   * Serves the projects of the due index round-robin; absent: in due order, which costs less and is as fair while a claim takes
   * all due messages.
   */
  rotation?: RotationState | undefined;
  /**
   * Whether the wait lists of flow-control keys come before the due index. The caller alternates this value, so that
   * neither source is starved when slots are few.
   */
  lanesFirst: boolean;
  /** Whether any backlog may have messages. If so, a due message joins its backlog unless that backlog is empty. */
  hasBacklogs?: boolean;
  /** Backlogs whose messages may start now, each up to its capacity. */
  backlogsToServe: BacklogKey[];
  /** How many of the first `backlogsToServe` belong to projects with little lag. These backlogs may take all slots. */
  freshBacklogs?: number;
  /** Whether the due index is served before `backlogsToServe`, not after. */
  dueFirst?: boolean;
}

/**
 * A claimed message with the due time of this attempt, which is not the due time of the first attempt if this is a retry.
 */
export interface ClaimedDue extends Claimed {
  dueAtMs: Millis;
}

export interface ClaimResult {
  /** Sorted by due time, then key. */
  claimed: ClaimedDue[];
  /** Backlogs that messages have joined because there was no capacity for these messages. */
  waitingBacklogs: BacklogKey[];
  /** The elements of `backlogsToServe` that are empty now. */
  emptied: BacklogKey[];
  /** When the next message of the due index or a wait list is due; may be in the past when `limit` was reached. */
  nextDueAtMs: Millis | undefined;
  /**
   * Whether other transactions have locked the due messages, so that another claim now would only slow these transactions
   * down.
   */
  isLocked?: boolean;
  /** The rotation for the next claim, if this claim had a `rotation`. */
  rotation?: RotationState | undefined;
}
