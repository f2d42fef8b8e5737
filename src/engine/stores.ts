/**
 * What the engine asks of a store, one small interface for each noun. Every method is one transaction (reads: one
 * snapshot), is given `nowMs` where time matters, and reads no clock. A promise that resolves says that the
 * change is durable (P1). All throw `StoreUnavailable` when nothing was written and the caller may try again.
 */

import type { HttpMethod } from '../protocol/options/settings.ts';
import type { Saved } from './messages/accepted.ts';
import type {
  Claimed,
  ClaimToken,
  DeadLetter,
  LogDetail,
  LogState,
  Message,
  MessageId,
  Millis,
  RunLogState,
  WorkerId,
} from './model.ts';

/** What a store enforces on its own, for every project alike; 0 means unlimited. */
export interface StoreLimits {
  queuesMax: number;
  /** Attempts of a project in flight at most, with or without a lane. */
  parallelismMax: number;
  /**
   * Messages of a project on one day (UTC). A publish beyond it is refused; other new messages count, but are not
   * refused.
   */
  messagesPerDayMax: number;
  /** Bytes of a run's journal as deliveries show it; more is refused. */
  journalBytesMax: number;
  /** Messages of a run that is over which are cancelled in one transaction; only tests set it. */
  cancelledTogetherMax?: number;
}

/** The delivery slot of a settled message, offered to the next message of its lane. */
export interface Handoff {
  worker: WorkerId;
  claimToken: ClaimToken;
  /** Body bytes that the next message may have. */
  bytesMax: number;
}

/** `Next`: the form in which the next message of the lane is returned. */
export type Settled<Next = Claimed> =
  /** The message was claimed anew or is gone; nothing was written (P6). */
  | { kind: 'stale' }
  /** The run that should end with the message has changed; nothing was written: read the run again. */
  | { kind: 'runChanged' }
  /** The journal of the run that should end has another result of its last step; nothing was written (P8). */
  | { kind: 'stepTaken' }
  /**
   * `next`: the lane's next message, claimed in the same transaction under the token of the handoff. `follows`: how
   * each message of `change.follows` was saved, in their order; absent when there is none, or when a cancel took the
   * place of `change`. `isCancelled`: `changeIfCancelRequested` was saved in place of `change`. `isMoreLeft`: as in
   * `EndedAs`.
   */
  | { kind: 'saved'; next?: Next; follows?: Saved[]; isCancelled?: true; isMoreLeft?: true };

/** What became of a checkpoint. Whatever the answer but `saved`, nothing was written. */
export type Checkpointed =
  /** A message that would be done was claimed anew or is gone (P6). */
  | { kind: 'stale' }
  | { kind: 'runOver' }
  /** The run has changed since what enters its journal was made: read it again. */
  | { kind: 'runChanged' }
  /** The journal of the run would be too long. */
  | { kind: 'journalFull'; limit: number }
  /** The project has fewer messages left today than `follows` has. */
  | { kind: 'overDayLimit'; limit: number; remaining: number }
  /** How each of `follows` was saved, in their order; `dropped`: the journal had its entry already (P8). */
  | { kind: 'saved'; follows: Saved[] };

/** A dead message as the DLQ shows it. */
export interface DeadMessage {
  /** `<failed ms>-<key>`: sorts by failure time. */
  dlqId: string;
  message: Message;
  deadLetter: DeadLetter;
}

/** What the database holds, of all projects. */
export interface Storage {
  /** Indexes and what is unused included. */
  bytes: number;
  /** Free for new data, as far as the database says at once. */
  unusedBytes?: number;
  /** Whether there are other projects. */
  isShared: boolean;
}

export interface LogEntry {
  atMs: Millis;
  state: LogState;
  message: Message;
  detail?: LogDetail;
  /** Of a delivered message. */
  responseStatus?: number;
}

/** A place in the log of a project: entries are ordered by time, then by a number that is unique. */
export interface LogPosition {
  timeMs: Millis;
  n: number;
}

/** An entry of the log without bodies and headers. One of a run itself has the run's first message. */
export interface LiveEntry extends LogPosition {
  state: LogState | RunLogState;
  messageId: MessageId;
  url: string;
  method: HttpMethod;
  topicName?: string;
  queueName?: string;
  scheduleId?: string;
  flowControlKey?: string;
  labels?: string[];
  runId?: string;
  error?: string;
  nextDeliveryTimeMs?: Millis;
  responseStatus?: number;
}

/** What there is to do in a cell that nobody may be serving. */
export interface CellPoll {
  /** Until the next message, schedule or wait is due: `Infinity` when there is none. */
  dueInMs: Millis;
  /** The same of what the operator is to be told. */
  eventInMs: Millis;
  /** Whether work was left behind by a worker, waits in lines, or belongs to a project on the move. */
  isNeglected: boolean;
}
