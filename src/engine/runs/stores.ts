/** Types of commands on workflow runs, and of the store's operations on them. */
import type { HeaderMap, ResultMessage, WorkflowFeature } from '../../protocol/options/settings.ts';
import type { RunKey } from '../../workflow/model.ts';
import type { Saved } from '../messages/accepted.ts';
import type { Message, MessageId, MessageKey, Millis, NewRecord } from '../model.ts';

/** The result of ending a run. */
export type RunEndResult =
  /**
   * `follows`: how each follow-up message was saved, in order. `isMoreLeft`: one transaction did not cancel all messages;
   * `cancelRemaining` cancels the others.
   */
  | { kind: 'ended'; follows: Saved[]; isMoreLeft?: true }
  /** The run has changed since the ending was made, so the run must be read again. */
  | { kind: 'changed' }
  /** The run has already ended, or never existed. */
  | { kind: 'over' };

/** The position of a message in the list of parked messages. */
export interface ParkedPosition {
  runKey: RunKey;
  key: MessageKey;
}

export interface ParkedMessage extends ParkedPosition {
  id: MessageId;
}

/** The request of a run to wait for an event. */
export interface WaitCommand {
  runId: string;
  /** When the run was created, if the sender gives this time: successive runs may have the same id. */
  createdAtMs?: Millis;
  eventId: string;
  /** The timeout as the client sent it. */
  timeout: string;
  timeoutMs: Millis;
  /** The step, with its members as the client sent them. */
  step: Uint8Array;
  stepId: number;
  /** The features that the receiver of the result supports. */
  features: WorkflowFeature[];
  /** The message with the result of the wait, before the configuration of the run is applied. */
  notified: ResultMessage;
  timedOut: ResultMessage;
  /** Header maps as the list of waiters shows them. */
  headers: HeaderMap;
  timeoutHeaders: HeaderMap;
  /** The body of the result after a timeout, in base64. */
  timeoutBody?: string;
  callerIp?: string;
}

/** The effect of a notification on one run. */
export interface NotificationResult {
  /** Absent when the notification was saved for a later wait. */
  waiter?: Waiter;
  messageId?: MessageId;
  runId: string;
  runCreatedAtMs: Millis;
}

/** A wait to be saved. */
export interface NewWaiter {
  record: NewRecord;
  eventId: string;
  deadlineMs: Millis;
}

/** A registered wait with its record. */
export interface Waiter {
  eventId: string;
  deadlineMs: Millis;
  record: Message;
}

/** A notification that was saved for the next wait of a run. */
export interface PendingEvent {
  key: number;
  body: Uint8Array;
}

/** The limits of a run's pending events. */
export interface PendingEventLimits {
  events: number;
  /** The maximum size of all bodies together. A single event may be larger. */
  bytes: number;
}

/** The result of registering a wait. */
export type WaitOutcome =
  | { kind: 'registered' }
  /** The wait took a pending event, and its result was saved. */
  | { kind: 'notified'; saved: Saved }
  /** The same wait is already registered. */
  | { kind: 'duplicate'; messageId: MessageId }
  | { kind: 'over' }
  /** The journal of the run is over its limit. */
  | { kind: 'journalFull'; limit: number }
  /** The run or its pending events have changed, and must be read again. */
  | { kind: 'changed' };

/** A position in the list of all waiters of a project. */
export interface WaiterPosition {
  eventId: string;
  key: MessageKey;
}

/** A waiter without its record. */
export interface ListedWaiter extends WaiterPosition {
  /** The message id of the wait. */
  messageId: MessageId;
  runId: string;
  runUrl: string;
  runCreatedAtMs: Millis;
  sinceMs: Millis;
  deadlineMs: Millis;
}
