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
  /** `follows`: where each of the messages that follow stands, in their order. */
  | { kind: 'ended'; follows: Saved[] }
  /** The run is not as it was when the ending was made: read it again. */
  | { kind: 'changed' }
  /** It has ended before, or never was. */
  | { kind: 'over' };

export interface RunStore {
  /** The run of that id that has not ended. */
  findActiveRun(projectId: ProjectId, id: string): Promise<Run | undefined>;
  /** By its key, ended or not. */
  findRun(projectId: ProjectId, key: RunKey): Promise<Run | undefined>;
  /** Bytes of the journal, as deliveries show it, of the run of that id that has not ended. */
  journalBytes(args: InProject & { id: string }): Promise<number | undefined>;
  /** What deliveries show of the journal, in order: after `afterPosition` (default: from the start) up to `toPosition`. */
  readJournal(runKey: RunKey, range?: { afterPosition?: number; toPosition?: number }): Promise<JournalEntry[]>;
  /** What was kept of waits and invocations, those that exist, in the order of `keys`. */
  findRecords(projectId: ProjectId, keys: MessageKey[]): Promise<Message[]>;
  /**
   * Ends each run that still is as its ending supposes: its messages that wait are cancelled, those in flight marked, its
   * waiters and its pending events removed, and `follows` saved. A message that follows for the journal of a run that is over is
   * not saved, but that the result of an invocation of a failed run is kept for its log.
   */
  endRuns(endings: { ending: RunEnding; follows: NewMessage[] }[], nowMs: Millis): Promise<EndedAs[]>;
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

/** What a run may have saved for its waits to come. */
export interface PendingEventLimits {
  events: number;
  /** Of their bodies; one alone may have more. */
  bytes: number;
}

/** What became of a wait that is to be registered. */
export type Waiting =
  | { kind: 'registered' }
  /** Its result was saved at once: it took the pending event. */
  | { kind: 'answered'; saved: Saved }
  /** The same wait was registered before. */
  | { kind: 'duplicate'; messageId: MessageId }
  | { kind: 'over' }
  /** The journal of the run is longer than it may be. */
  | { kind: 'journalFull'; limit: number }
  /** The run or its pending events are not as was supposed: read again. */
  | { kind: 'changed' };

export interface WaiterStore {
  /** The oldest pending event of a run for an event. */
  nextPendingEvent(runKey: RunKey, eventId: string): Promise<PendingEvent | undefined>;
  /** Registers the wait while there is no pending event for it; or, given one, takes that, if it still is the oldest, and saves `result`. */
  addWaiter(
    waiter: NewWaiter,
    taken: { pendingEventKey: number; result: NewMessage } | undefined,
    nowMs: Millis,
  ): Promise<Waiting>;
  /**
   * In order of registration; those of one run when `runKey` is given. Up to `count`, and up to about 4 MiB of what they
   * were registered with, but at least one while there is one.
   */
  listWaiters(
    projectId: ProjectId,
    eventId: string,
    page: { runKey?: RunKey; afterKey?: MessageKey; count: number },
  ): Promise<Waiter[]>;
  /** Removes each waiter that still is registered and saves its result; `'gone'`, with nothing of it done, for the others. */
  resolveWaiters(
    resolutions: { waiterKey: MessageKey; result: NewMessage }[],
    nowMs: Millis,
  ): Promise<(Saved | 'gone')[]>;
  /** Keeps an event for a run that has no waiter for it, within the limits of what a run may have of it. */
  savePendingEvent(
    projectId: ProjectId,
    runKey: RunKey,
    eventId: string,
    pendingEvent: PendingEvent,
    limits: PendingEventLimits,
  ): Promise<'saved' | 'over' | 'waited' | 'tooMuch'>;
  /** Waiters whose deadline has come, earliest first, as many as `listWaiters` would; and when there is none, the earliest deadline. */
  dueWaiters(request: { nowMs: Millis; limit: number }): Promise<{ due: Waiter[]; nextAtMs: Millis | undefined }>;
}
