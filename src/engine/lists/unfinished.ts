/** The types for unfinished messages: in lists, in the backlog of a project, and in the totals of a store. */

import type { FlowKey, FlowKeyState, QueueBlocker } from '../lanes/lanes.ts';
import type { Message, MessageId, Millis } from '../model.ts';
import type { WaitState } from '../wait-state.ts';
import type { AttributeFilter } from './filters.ts';

/** An unfinished message and what it waits for. */
export interface LiveMessage {
  message: Message;
  retried: number;
  /** The code of its workflow has changed: its run waits for code that fits, or for a request to attempt it. */
  isParked?: true;
  state:
    | { kind: 'claimed'; claimedAtMs: Millis }
    | { kind: Exclude<WaitState, 'queue' | 'flow'>; dueAtMs: Millis }
    /**
     * `ahead`: messages ahead of it; absent: not counted. `hasPermit`: it was started already, and waits because the queue is
     * paused.
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
 * The state of an unfinished message. `waiting`: for its due time, or for a worker to notice that it is due. `active`: it is
 * being attempted. `held`: it is due, but waits because of a limit of its queue, flow-control key, origin or project.
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

/** The unfinished messages of a project, including those of workflow runs. The cost does not grow with their number. */
export interface Backlog {
  active: number;
  waiting: Counted;
  held: Counted;
  /** The earliest due time of the examined messages that are due and not in flight. Absent: none is. */
  oldestDueAtMs?: Millis;
  /** The messages that wait because the project has reached its limit of attempts in flight; absent: none. */
  project?: WaitList;
  /** Each of these lists is partial. */
  origins: (WaitList & { origin: string })[];
  queues: QueueWaitList[];
  keys: KeyWaitList[];
  /** Whether there are more wait lists than these. */
  isPartial: boolean;
}

/** The maximum that is counted of each kind in `Totals`. */
export const COUNTED_OF_ALL_MAX = 20_000;

/** The unfinished messages of all projects, by what they wait for. The cost does not grow with their number. */
export interface Totals {
  /** Due and in no wait list: ready for a worker to claim. */
  due: number;
  /** Waiting for their due time. */
  scheduled: number;
  origin: number;
  project: number;
  /** Waiting for their flow-control key or, with a key, for their due time. */
  flow: number;
  queue: number;
  active: number;
  /** How long the oldest message has been due that waits for no queue and no key; 0 if there is none. */
  oldestDueMs: Millis;
  /** In the DLQ, including messages of workflow runs. */
  dead: number;
  /** Runs that have not ended. */
  runs: number;
  /** Runs that wait for an event. */
  waiters: number;
  /** The size of the database; `unusedBytes`: the part that is free for new rows. Absent: the database does not say. */
  storage: { bytes: number; unusedBytes?: number };
}

/** The causes of the latest entries of the DLQ, including those of workflow runs. */
export interface Failures {
  messages: Counted;
  runs: Counted;
  /** How many entries, the latest ones, were examined for the causes. */
  lookedAt: number;
  /** The most frequent first. */
  causes: FailureCause[];
}

export interface FailureCause {
  /** 0 without a response. */
  responseStatus: number;
  /** The kind of failure, without a response. */
  error?: string;
  count: number;
  /** How many of them are workflow runs. */
  runs: number;
  lastAtMs: Millis;
}
