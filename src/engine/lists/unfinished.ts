/** What is a list of a project's unfinished messages, and what is their sum? */

import type { FlowKey, FlowKeyState, QueueBlocker } from '../lanes/lanes.ts';
import type { Message, MessageId, Millis } from '../model.ts';
import type { WaitState } from '../wait-state.ts';
import type { AttributeFilter } from './filters.ts';

/** An unfinished message and what it waits for. */
export interface LiveMessage {
  message: Message;
  retried: number;
  /** The code of its workflow has changed: its run waits for other code, or for somebody who asks for an attempt. */
  isParked?: true;
  state:
    | { kind: 'claimed'; claimedAtMs: Millis }
    | { kind: Exclude<WaitState, 'queue' | 'flow'>; dueAtMs: Millis }
    /**
     * `ahead` messages go before it; absent: they were not counted. `hasSlot`: it was started already, and waits because
     * the queue is paused.
     */
    | {
        kind: 'queue';
        dueAtMs: Millis;
        isPaused: boolean;
        hasSlot: boolean;
        ahead?: number;
        parallelism: number;
        blockedBy?: QueueBlocker;
      }
    | { kind: 'flow'; dueAtMs: Millis; key: FlowKeyState & Partial<FlowKey> };
  cancelRequested: boolean;
}

/**
 * What an unfinished message does, in one word. `waiting`: for its time, or for a worker to notice that it has come.
 * `active`: it is being attempted. `held`: it is due, but its queue, flow-control key, origin or project holds it back.
 */
export const STANDINGS = ['waiting', 'active', 'held'] as const;

export type Standing = (typeof STANDINGS)[number];

export interface UnfinishedFilter extends AttributeFilter {
  /** Unknown ids match nothing. */
  messageId?: MessageId[];
  standing?: Standing[];
}

/** Its message has an empty body, and neither its queue's messages nor its key's are counted. */
export interface UnfinishedMessage extends LiveMessage {
  standing: Standing;
  bodyBytes: number;
}

/** `isAtLeast`: there may be more, which were not counted. */
export interface Counted {
  count: number;
  isAtLeast: boolean;
}

/** Where messages wait in line. */
export interface WaitList {
  waiting: Counted;
  /** When the first of the line became due, or becomes so. */
  firstDueAtMs: Millis;
}

export interface QueueWaitList extends WaitList {
  queueName: string;
  isPaused: boolean;
  parallelism: number;
}

/** `waiting` are those that are due. */
export interface KeyWaitList extends WaitList {
  key: FlowKeyState;
}

/** What is unfinished in a project, those of workflow runs included. Costs the same however much there is. */
export interface Backlog {
  active: number;
  waiting: Counted;
  held: Counted;
  /** Of the messages that are due and not in flight, as far as it was looked. Absent: none is. */
  oldestDueAtMs?: Millis;
  /** The messages held because of all attempts of the project in flight; absent: none are. */
  project?: WaitList;
  /** Each is a part of all lines. */
  origins: (WaitList & { origin: string })[];
  queues: QueueWaitList[];
  keys: KeyWaitList[];
  /** Whether there are more lines than these. */
  isPartial: boolean;
}

/** Of each kind in `Totals`, no more than so many are counted. */
export const COUNTED_OF_ALL_MAX = 20_000;

/** What is unfinished in all projects together, by what it waits for. Costs the same however much there is. */
export interface Totals {
  /** Due, and in no line: for a worker to claim them. */
  due: number;
  /** For their time. */
  scheduled: number;
  origin: number;
  project: number;
  /** For their flow-control key or, with a key, for their time. */
  flow: number;
  queue: number;
  active: number;
  /** How long the oldest of the messages has waited that are due and that no queue and no key holds back; 0 if there is none. */
  oldestDueMs: Millis;
  /** In the DLQ, workflow runs included. */
  dead: number;
  /** Not ended. */
  runs: number;
  /** Runs' waits for events. */
  waiters: number;
  /** What the database takes; `unusedBytes`: of these, what is free for new rows. Absent: it does not say. */
  storage: { bytes: number; unusedBytes?: number };
}

/** What the latest entries of the DLQ failed of, those of workflow runs included. */
export interface Failures {
  messages: Counted;
  runs: Counted;
  /** How many entries were looked at for the causes, the latest ones. */
  lookedAt: number;
  /** The most frequent first. */
  causes: FailureCause[];
}

export interface FailureCause {
  /** 0 without an answer. */
  responseStatus: number;
  /** What kind of failure it was, without an answer. */
  error?: string;
  count: number;
  /** So many of them are workflow runs. */
  runs: number;
  lastAtMs: Millis;
}
