/** What workflow runs are asked for and answer with, by the API and by the store. */
import type { HeaderMap, ResultPart, WorkflowFeature } from '../../protocol/options/settings.ts';
import type { RunKey } from '../../workflow/model.ts';
import type { Saved } from '../messages/accepted.ts';
import type { Message, MessageId, MessageKey, Millis, NewRecord } from '../model.ts';

/** What became of an attempt to end a run. */
export type EndedAs =
  /**
   * `follows`: how each message that follows was saved, in their order. `isMoreLeft`: more messages are left than one
   * transaction cancels: call `cancelLeft`.
   */
  | { kind: 'ended'; follows: Saved[]; isMoreLeft?: true }
  /** The run has changed since the ending was made: read it again. */
  | { kind: 'changed' }
  /** It has ended before, or never existed. */
  | { kind: 'over' };

/** Where a message of a run is in the list of those that are parked. */
export interface ParkedPosition {
  runKey: RunKey;
  key: MessageKey;
}

export interface ParkedMessage extends ParkedPosition {
  id: MessageId;
}

/** A wait that a run asks for. */
export interface WaitCommand {
  runId: string;
  /** When the run was created, if the sender says so: runs may have the same id one after the other. */
  createdAtMs?: Millis;
  eventId: string;
  /** As it was sent. */
  timeout: string;
  timeoutMs: Millis;
  /** The step, its members as they were sent. */
  step: Uint8Array;
  stepId: number;
  /** What the receiver of its result supports. */
  features: WorkflowFeature[];
  /** As the client asked for them, before the configuration of the run is applied. */
  notified: ResultPart;
  timedOut: ResultPart;
  /** Header maps as the list of waiters shows them. */
  headers: HeaderMap;
  timeoutHeaders: HeaderMap;
  /** Base64. */
  timeoutBody?: string;
  callerIp?: string;
}

/** What a notification did for one run. */
export interface Notified {
  /** Absent when the notification was saved for a later wait. */
  waiter?: Waiter;
  messageId?: MessageId;
  runId: string;
  runCreatedAtMs: Millis;
}

/** A wait on its way into the store. */
export interface NewWaiter {
  record: NewRecord;
  eventId: string;
  deadlineMs: Millis;
}

/** A wait that is registered. `record` holds what it was registered with. */
export interface Waiter {
  eventId: string;
  deadlineMs: Millis;
  record: Message;
}

/** A notification that is saved for the next wait of a run. */
export interface PendingEvent {
  key: number;
  body: Uint8Array;
}

/** How many pending events a run may have. */
export interface PendingEventLimits {
  events: number;
  /** Of all their bodies; a single event may have more. */
  bytes: number;
}

/** What became of the request to register a wait. */
export type Waiting =
  | { kind: 'registered' }
  /** Its result was saved at once: it took the pending event. */
  | { kind: 'answered'; saved: Saved }
  /** The same wait was registered before. */
  | { kind: 'duplicate'; messageId: MessageId }
  | { kind: 'over' }
  /** The journal of the run is longer than it may be. */
  | { kind: 'journalFull'; limit: number }
  /** The run or its pending events have changed: read them again. */
  | { kind: 'changed' };

/** A place in the list of all waiters of a project. */
export interface WaiterPosition {
  eventId: string;
  key: MessageKey;
}

/** A waiter without what it was registered with. */
export interface ListedWaiter extends WaiterPosition {
  /** Of the wait itself. */
  messageId: MessageId;
  runId: string;
  runUrl: string;
  runCreatedAtMs: Millis;
  sinceMs: Millis;
  deadlineMs: Millis;
}
