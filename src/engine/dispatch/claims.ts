/** The request of a worker for messages, and the answer. */
import type { OriginLine } from '../lanes/origin-line.ts';
import type { Claimed, ClaimToken, MessageKey, Millis, ProjectId, WorkerId } from '../model.ts';

/** How many more attempts each project may start; `defaultRoom` for a project that is not named. */
export interface ProjectRooms {
  roomByProject: Record<ProjectId, number>;
  defaultRoom: number;
}

/** Which project has the next turn at the due index. */
export interface Turns {
  /** The project that had the last turn. */
  after: ProjectId;
  /** All projects with messages in the due index, by id, as an earlier claim found them; absent: this claim reads them. */
  seen?: { atMs: Millis; projects: SeenProject[] } | undefined;
}

/** A project with messages in the due index, and the first of these. */
export interface SeenProject {
  id: ProjectId;
  dueAtMs: Millis;
  key: MessageKey;
}

export interface ClaimRequest {
  worker: WorkerId;
  /** Claims made in this transaction get `firstToken`, `firstToken + 1`, …; the caller owns `limit` of them. */
  firstToken: ClaimToken;
  /** No more than this many messages, those in lines included. */
  limit: number;
  /** No more than this many body bytes, but at least one message, unless `isStrict`: then another claim may have exceeded its own. */
  bytesMax: number;
  isStrict?: boolean;
  /** How many more attempts each busy origin may start; `defaultRoom` for an origin that is not named. */
  roomByOrigin: Record<string, number>;
  defaultRoom: number;
  /** Lines that have less room than their origin. */
  roomByLine?: Record<OriginLine, number>;
  /** Absent: any number for each project. */
  projects?: ProjectRooms;
  /** How many more attempts lines that are not in `proven` may start: `slots` in all, and by project; absent: any number. */
  unproven?: ProjectRooms & { slots: number; proven: OriginLine[] };
  /** Whether to look at the due index and the keys' wait lists at all; false when only messages in lines are asked for. */
  due: boolean;
  /**
   * Projects take turns at the due index; absent: messages are taken in due order, which costs less and makes no difference while a
   * claim takes all that is due.
   */
  turns?: Turns | undefined;
  /** Whether the keys' wait lists come before the due index. They take turns, which matters when slots are few. */
  lanesFirst: boolean;
  /** Whether any line may have a backlog: then a due message joins the backlog of its line. */
  hasLines?: boolean;
  /** Lines whose messages may start now, each up to its room. */
  linesToServe: OriginLine[];
  /** The number of lines, the first ones, whose projects are not far behind: these may take all slots. */
  freshLines?: number;
  /** Whether the due index is served before `linesToServe`, not after. */
  dueFirst?: boolean;
}

/** With the time at which this attempt was due: for a retry, later than for the first attempt. */
export interface ClaimedDue extends Claimed {
  dueAtMs: Millis;
}

export interface ClaimAnswer {
  /** Sorted by due time, then key. */
  claimed: ClaimedDue[];
  /** Lines that messages have joined because they had no room. */
  waitingLines: OriginLine[];
  /** Lines of `linesToServe` without a backlog by now. */
  emptied: OriginLine[];
  /** When the next message of the due index or a wait list is due; may be in the past when `limit` was reached. */
  nextDueAtMs: Millis | undefined;
  /** Other transactions have locked what is due. To ask again at once would only slow them. */
  isLocked?: boolean;
  /** For the next claim, if projects took turns. */
  turns?: Turns | undefined;
}
