/** The types for unfinished messages: in lists, in the backlog of a project, and in the totals of a store. */

import type { FlowKey, FlowKeyState, QueueBlocker } from '../lanes/lanes.ts';
import type { Message, MessageId, Millis } from '../model.ts';
import type { WaitState } from '../wait-state.ts';
import type { AttributeFilter } from './filters.ts';

/** An unfinished message, and the reason why the message waits. */
export interface LiveMessage {
  message: Message;
  retried: number;
  /** Set when the workflow's code has changed: the run waits for code that fits, or for a request to attempt it. */
  isParked?: true;
  state:
    | { kind: 'claimed'; claimedAtMs: Millis }
    | { kind: Exclude<WaitState, 'queue' | 'flow'>; dueAtMs: Millis }
    /**
     * `ahead`: the number of messages ahead of this one; absent if not counted. `hasPermit`: whether the message was
     * started already, and waits because the queue is paused.
     */
    | {
        kind: 'queue';
        dueAtMs: Millis;
        isPaused: boolean;
        hasPermit: boolean;
        ahead?: number;
        parallelism: number;
        blockedBy?: QueueBlocker;
      }
    | { kind: 'flow'; dueAtMs: Millis; key: FlowKeyState & Partial<FlowKey> };
  cancelRequested: boolean;
}

/**
 * The state of an unfinished message. A `waiting` message waits for its due time, or for a worker to notice that it is
 * due. An `active` message is being attempted. A `held` message is due, but waits because of a limit of its queue,
 * flow-control key, origin or project.
 */
export const UNFINISHED_STATES = ['waiting', 'active', 'held'] as const;

export type UnfinishedState = (typeof UNFINISHED_STATES)[number];

export interface UnfinishedFilter extends AttributeFilter {
  /** Unknown ids match nothing. */
  messageId?: MessageId[];
  unfinishedState?: UnfinishedState[];
}

/** An unfinished message in a list: with an empty body, and without the number of messages ahead of it. */
export interface UnfinishedMessage extends LiveMessage {
  unfinishedState: UnfinishedState;
  bodyBytes: number;
}

/** A number of messages. `isAtLeast`: there may be more, which were not counted. */
export interface Counted {
  count: number;
  isAtLeast: boolean;
}

/** The messages that wait because of one limit. */
export interface WaitList {
  waiting: Counted;
  /** The earliest due time of these messages, in the past or in the future. */
  firstDueAtMs: Millis;
}

export interface QueueWaitList extends WaitList {
  queueName: string;
  isPaused: boolean;
  parallelism: number;
}

/** The due messages of a flow-control key. */
export interface KeyWaitList extends WaitList {
  key: FlowKeyState;
}

/**
 * The unfinished messages of a project, including messages of workflow runs. The cost does not grow with the number of
 * messages.
 */
export interface Backlog {
  active: number;
  waiting: Counted;
  held: Counted;
  /** The earliest due time of the examined messages that are due and not in flight. Absent if there is none. */
  oldestDueAtMs?: Millis;
  /** The messages that wait because the project has reached its limit of attempts in flight; absent: none. */
  project?: WaitList;
  /** The lists `origins`, `queues` and `keys` may be incomplete: see `isPartial`. */
  origins: (WaitList & { origin: string })[];
  queues: QueueWaitList[];
  keys: KeyWaitList[];
  /** Whether there are more wait lists than the lists shown here. */
  isPartial: boolean;
}

/** The maximum to which each number of `Totals` is counted. */
export const COUNTED_OF_ALL_MAX = 20_000;

/**
 * The unfinished messages of all projects, by the reason why they wait. The cost does not grow with the number of
 * messages.
 */
export interface Totals {
  /** Due and in no wait list: ready for a worker to claim. */
  due: number;
  /** Waiting for their due time. */
  scheduled: number;
  origin: number;
  project: number;
  /** Messages that wait for their flow-control key, or that have such a key and wait for their due time. */
  flow: number;
  queue: number;
  active: number;
  /** For how long the oldest due message that is in no lane has been due; 0 if there is no such message. */
  oldestDueMs: Millis;
  /** In the DLQ, including messages of workflow runs. */
  dead: number;
  /** Runs that have not ended. */
  runs: number;
  /** Runs that wait for an event. */
  waiters: number;
  /**
   * The size of the database. `unusedBytes`: the part that is free for new rows; absent if the database does not report
   * this part.
   */
  storage: { bytes: number; unusedBytes?: number };
}

/** The causes of the latest entries of the DLQ, including entries of workflow runs. */
export interface Failures {
  messages: Counted;
  runs: Counted;
  /** How many of the latest entries were examined for the causes. */
  lookedAt: number;
  /** The most frequent first. */
  causes: FailureCause[];
}

export interface FailureCause {
  /** 0 if there was no response. */
  responseStatus: number;
  /** The kind of failure. Present if there was no response. */
  error?: string;
  count: number;
  /** How many of these failures belong to workflow runs. */
  runs: number;
  lastAtMs: Millis;
}
