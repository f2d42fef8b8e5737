/** What does a worker ask for when it claims messages, and what does it get? */
import type { OriginLine } from '../lanes/origin-line.ts';
import type { Claimed, ClaimToken, MessageKey, Millis, ProjectId, WorkerId } from '../model.ts';

/** How many more attempts each project may have; `defaultRoom` for one not named here. */
export interface ProjectRooms {
  roomByProject: Record<ProjectId, number>;
  defaultRoom: number;
}

/** Whose turn it is at the due index. */
export interface Turns {
  /** The project that had the last turn. */
  after: ProjectId;
  /** All projects with messages in the due index, by their ids, as an earlier claim found them; absent: this one looks. */
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
  /**
   * No more than this many body bytes, but at least one message, unless `isStrict`: then another claim may exceed its
   * own.
   */
  bytesMax: number;
  isStrict?: boolean;
  /** How many more attempts each busy origin may have; `defaultRoom` for an origin not named here. */
  roomByOrigin: Record<string, number>;
  defaultRoom: number;
  /** The same for lines that have less room than their origin. */
  roomByLine?: Record<OriginLine, number>;
  /** The same for projects; absent: any number. */
  projects?: ProjectRooms;
  /**
   * How many more attempts lines may have that are not in `proven`: `slots` in all, and by project; absent: any number.
   */
  unproven?: ProjectRooms & { slots: number; proven: OriginLine[] };
  /** Whether to look at the due index and the keys' wait lists at all; false when only messages in lines are asked for. */
  due: boolean;
  /**
   * Projects take turns at the due index; absent: whatever is due first is taken first, which costs less and is the
   * same while a claim takes all that is due.
   */
  turns?: Turns | undefined;
  /** Whether the keys' wait lists come before the due index. They take turns, which matters when slots are few. */
  lanesFirst: boolean;
  /** Whether messages may wait in any line: then a due message joins those that wait in its own. */
  hasLines?: boolean;
  /** Lines whose messages may go now, each up to its room. */
  linesToServe: OriginLine[];
  /** How many of them, the first ones, are of projects that are not far behind: these may take all slots. */
  freshLines?: number;
  /** Whether the due index is served before `linesToServe`, not after. */
  dueFirst?: boolean;
}

/** With the time since which the message was due, which for a retry is later than for its first attempt. */
export interface ClaimedDue extends Claimed {
  dueAtMs: Millis;
}

export interface ClaimAnswer {
  /** Sorted by due time, then key. */
  claimed: ClaimedDue[];
  /** Lines that messages have joined because this claim found no room for them. */
  waitingLines: OriginLine[];
  /** Those of `linesToServe` in which no message waits any more. */
  emptied: OriginLine[];
  /** When the next message of the due index or a wait list is due; may be in the past when `limit` was reached. */
  nextDueAtMs: Millis | undefined;
  /** Others have locked what is due. To ask again at once would only slow them down. */
  isLocked?: boolean;
  /** For the next claim, when projects took turns. */
  turns?: Turns | undefined;
}
