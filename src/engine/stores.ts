/**
 * The interfaces of a store for the engine, one small interface for each noun. Each method is one transaction; a method
 * that only reads is one snapshot. A method that needs the time has the argument `nowMs`, because stores read no clock.
 * When the promise of a method resolves, the change is durable (P1). Each method throws `StoreUnavailable` if nothing was
 * written and the caller may retry.
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

/** Limits that a store enforces, the same for every project; 0 means unlimited. */
export interface StoreLimits {
  queuesMax: number;
  /** The maximum of attempts in flight of a project, with or without a lane. */
  parallelismMax: number;
  /**
   * The maximum of messages of a project in one day (UTC). Publishes beyond this maximum are rejected; other new messages
   * count, but are not rejected.
   */
  messagesPerDayMax: number;
  /** The maximum bytes of a journal as deliveries contain it. A publish that would exceed this maximum is rejected. */
  journalBytesMax: number;
  /** The maximum of messages of an ended run that are cancelled in one transaction. Only tests set this limit. */
  cancelledTogetherMax?: number;
}

/** The delivery slot of a settled message, offered to the next message of its lane. */
export interface Handoff {
  worker: WorkerId;
  claimToken: ClaimToken;
  /** The maximum body bytes of the next message. */
  bytesMax: number;
}

/** `Next`: the form in which the next message of the lane is returned. */
export type Settled<Next = Claimed> =
  /** The message was claimed again or no longer exists; nothing was written (P6). */
  | { kind: 'stale' }
  /** The run that the message would have ended has changed; nothing was written: read the run again. */
  | { kind: 'runChanged' }
  /**
   * The journal of the run that would have ended already has a different result of the last step; nothing was written
   * (P8).
   */
  | { kind: 'stepTaken' }
  /**
   * `next`: the next message of the lane, claimed in the same transaction under the token of the handoff. `follows`: how each
   * message of `change.follows` was saved, in their order; absent when there is none, or when a cancel replaced `change`.
   * `isCancelled`: `changeIfCancelRequested` was saved instead of `change`. `isMoreLeft`: as in `RunEndResult`.
   */
  | { kind: 'saved'; next?: Next; follows?: Saved[]; isCancelled?: true; isMoreLeft?: true };

/** The result of a checkpoint. Nothing was written unless the kind is `saved`. */
export type Checkpointed =
  /** A finished message was claimed again or no longer exists (P6). */
  | { kind: 'stale' }
  | { kind: 'runOver' }
  /** The run has changed since the entries were made, so the run must be read again. */
  | { kind: 'runChanged' }
  /** The journal of the run would be too long. */
  | { kind: 'journalFull'; limit: number }
  /** The messages of `follows` exceed the daily limit of the project. */
  | { kind: 'overDayLimit'; limit: number; remaining: number }
  /**
   * How each message of the checkpoint's `follows` was saved, in the same order; `dropped`: the journal already had the
   * entry (P8).
   */
  | { kind: 'saved'; follows: Saved[] };

/** A dead message in the form in which the DLQ shows it. */
export interface DeadMessage {
  /** `<failed ms>-<key>`: the time of the failure and the message key, so that ids sort by this time. */
  dlqId: string;
  message: Message;
  deadLetter: DeadLetter;
}

/** The size of the database, over all projects. */
export interface Storage {
  /** The size with indexes and unused space. */
  bytes: number;
  /** The part that is free for new data; absent if the database cannot report this part quickly. */
  unusedBytes?: number;
  /** Whether the database has several projects. */
  isShared: boolean;
}

export interface LogEntry {
  atMs: Millis;
  state: LogState;
  message: Message;
  detail?: LogDetail;
  /** The status of the response. Only for a delivered message. */
  responseStatus?: number;
}

/** A position in the log of a project: entries are ordered by time, then by a unique number. */
export interface LogPosition {
  timeMs: Millis;
  n: number;
}

/** A log entry without bodies and headers. An entry about the run itself names the first message of the run. */
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

/** The pending work of a cell that perhaps no worker serves. */
export interface CellPoll {
  /** The time until the next message, schedule or wait is due; `Infinity` when there is none. */
  dueInMs: Millis;
  /** The time until the next operator event is due; `Infinity` when there is none. */
  eventInMs: Millis;
  /** Whether work is left over from a worker, waits in lists, or belongs to a project that is being moved. */
  isNeglected: boolean;
}
