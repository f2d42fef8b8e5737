/** What does a worker ask for when it claims messages, and what does it get? */
import type { OriginLine } from '../lanes/origin-line.ts';
import type { Claimed, ClaimToken, Millis, ProjectId, WorkerId } from '../model.ts';

/** How many more attempts each project may have; `defaultRoom` for one not named here. */
export interface ProjectRooms {
  roomByProject: Record<ProjectId, number>;
  defaultRoom: number;
}

export interface ClaimRequest {
  worker: WorkerId;
  /** Claims made in this transaction get `firstToken`, `firstToken + 1`, …; the caller owns `limit` of them. */
  firstToken: ClaimToken;
  /** No more than this many messages, those in lines included. */
  limit: number;
  /** No more than this many body bytes, but always at least one message, unless another claim under way may exceed its own. */
  bytesMax: number;
  isStrict?: boolean;
  /** How many more attempts each busy origin may have; `defaultRoom` for an origin not named here. */
  roomByOrigin: Record<string, number>;
  defaultRoom: number;
  /** The same for lines that have less room than their origin. */
  roomByLine?: Record<OriginLine, number>;
  /** The same for projects; absent: any number. */
  projects?: ProjectRooms;
  /** How many more attempts may go where no line of `proven` leads: `slots` in all, and by project; absent: any number. */
  unproven?: ProjectRooms & { slots: number; proven: OriginLine[] };
  /** Whether to look at the due index and the keys' wait lists at all; false when only messages in lines are asked for. */
  due: boolean;
  /** Which of these two comes first: where slots are few they take turns. */
  lanesFirst: boolean;
  /** Lines whose messages may go now, each up to its room. */
  linesToServe: OriginLine[];
  /** Whether the due index is served before those lines; what is due for one of them joins it. Else after them. */
  dueFirst?: boolean;
}

export interface ClaimAnswer {
  /** Sorted by due time, then key. */
  claimed: Claimed[];
  /** Lines that messages have joined because this claim found no room for them. */
  waitingLines: OriginLine[];
  /** Those of `linesToServe` in which nobody waits any more. */
  emptied: OriginLine[];
  /** When the due index or a key's wait list has something next; may be in the past when `limit` was reached. */
  nextDueAtMs: Millis | undefined;
}
