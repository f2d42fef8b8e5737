/** What the engine asks of a store about workflow runs; the rules of `stores.ts` hold. */
import type { JournalEntry, Run, RunKey } from '../../workflow/model.ts';
import type { Saved } from '../messages/accepted.ts';
import type {
  InProject,
  Message,
  MessageId,
  MessageKey,
  Millis,
  NewMessage,
  NewRecord,
  ProjectId,
  RunEnding,
} from '../model.ts';

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

export interface RunStore {
  /** The run with this id that has not ended. */
  findActiveRun(projectId: ProjectId, id: string): Promise<Run | undefined>;
  /** By its key, ended or not. */
  findRun(projectId: ProjectId, key: RunKey): Promise<Run | undefined>;
  /** Bytes of the journal, as deliveries show it, of the run with this id that has not ended. */
  journalBytes(args: InProject & { id: string }): Promise<number | undefined>;
  /** What deliveries show of the journal, in order: after `afterPosition` (default: from the start) up to `toPosition`. */
  readJournal(
    projectId: ProjectId,
    runKey: RunKey,
    range?: { afterPosition?: number; toPosition?: number },
  ): Promise<JournalEntry[]>;
  /** The waits, invocations and other entries that are kept, in the order of `keys`; missing ones are left out. */
  findRecords(projectId: ProjectId, keys: MessageKey[]): Promise<Message[]>;
  /** The first `limit` messages after `after` that are parked, by run, then by key: of one run, or of all. */
  findParked(
    args: InProject & { runKey?: RunKey | undefined; after: ParkedPosition; limit: number },
  ): Promise<ParkedMessage[]>;
  /**
   * Ends each run that has not changed since its ending was made: cancels its waiting messages, marks those in flight,
   * removes its waiters and its pending events, and saves `follows`. A message for the journal of a run that is over is
   * not saved; only the result of an invocation of a failed run is kept for its log.
   */
  endRuns(endings: { ending: RunEnding; follows: NewMessage[] }[], nowMs: Millis): Promise<EndedAs[]>;
  /**
   * Cancels a piece of what is left of runs that are over, and of those whose revival stopped (`retryRun`).
   * Answers whether there may be more, or when to look again: `Infinity` for never.
   */
  cancelLeft(nowMs: Millis): Promise<'more' | Millis>;
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

export interface WaiterStore {
  /** The oldest pending event of a run for an event. */
  nextPendingEvent(runKey: RunKey, eventId: string): Promise<PendingEvent | undefined>;
  /**
   * Registers the wait if there is no pending event for it. With `taken`: takes that event, if it is the oldest, and
   * saves `result`.
   */
  addWaiter(
    waiter: NewWaiter,
    taken: { pendingEventKey: number; result: NewMessage } | undefined,
    nowMs: Millis,
  ): Promise<Waiting>;
  /**
   * In order of registration; those of one run when `runKey` is given. Up to `count`, and up to about 4 MiB of what they
   * were registered with, but at least one if there is any.
   */
  listWaiters(
    projectId: ProjectId,
    eventId: string,
    page: { runKey?: RunKey; afterKey?: MessageKey; count: number },
  ): Promise<Waiter[]>;
  /**
   * Removes each waiter that is still registered and saves its result. `'gone'`: it was not, and nothing was done for
   * it.
   */
  resolveWaiters(
    resolutions: { waiterKey: MessageKey; result: NewMessage }[],
    nowMs: Millis,
  ): Promise<(Saved | 'gone')[]>;
  /** Keeps an event for a run that has no waiter for it, within `limits`. */
  savePendingEvent(
    projectId: ProjectId,
    runKey: RunKey,
    eventId: string,
    pendingEvent: PendingEvent,
    limits: PendingEventLimits,
  ): Promise<'saved' | 'over' | 'waited' | 'tooMuch'>;
  /**
   * Waiters whose deadline has come, earliest first, as many as `listWaiters` answers. When none is due: the earliest
   * deadline.
   */
  dueWaiters(request: { nowMs: Millis; limit: number }): Promise<{ due: Waiter[]; nextAtMs: Millis | undefined }>;
}

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

export interface WaiterListStore {
  /**
   * By event id, then in order of registration: the first `count` after `after` whose event ids begin with `prefix`,
   * which may be empty.
   */
  listAllWaiters(args: InProject & { prefix: string; after?: WaiterPosition; count: number }): Promise<ListedWaiter[]>;
}
