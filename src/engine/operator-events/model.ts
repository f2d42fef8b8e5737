/** Operator events: the facts that cause them, the counts of facts, and the settings. */
import type { Message, Millis, ProjectId } from '../model.ts';
import type { OperatorEventKind } from './kinds.ts';

/** The project of events that concern the whole server. */
export const NO_PROJECT: ProjectId = 0;

/**
 * An occurrence that is not counted yet. The change that caused it, if there is one, is saved in the same transaction.
 */
export interface OperatorFact {
  /** Unique among facts: the key of the dead message, or a new number. */
  key: number;
  kind: OperatorEventKind;
  projectId: ProjectId;
  atMs: Millis;
  /** The affected DLQ id, schedule, origin or worker. Never a body, a secret or a whole URL. */
  example: string;
}

/** The count of one kind of fact in one project since the last event of this kind. */
export interface Tally {
  kind: OperatorEventKind;
  projectId: ProjectId;
  count: number;
  firstAtMs: Millis;
  lastAtMs: Millis;
  /** The example of the first fact. */
  example: string;
  /** No event of this kind and project is published before this time. */
  quietUntilMs: Millis;
  /** The example that the latest event contains. */
  publishedExample?: string;
  /** When the event must be published; absent while the count is below the threshold. */
  dueAtMs?: Millis;
}

/** The rules for when an event is published. */
export interface OperatorEventRules {
  /** The minimum count of an event, by kind. A kind without a minimum count is never published. */
  thresholds: Partial<Record<OperatorEventKind, number>>;
  /** Minimum time between two events of a kind and project; also how long a count below the threshold is kept. */
  quietMs: Millis;
}

/** The server's settings for operator events. */
export interface OperatorEventsOptions extends OperatorEventRules {
  url: string;
  /** The project that owns the messages of the events, and whose keys sign these messages. */
  projectId: ProjectId;
  projectName: (projectId: ProjectId) => string;
  /** Returns the worker's cell, or undefined while there is only one cell. */
  cell?: () => { name: string; saveElsewhere: SaveElsewhere } | undefined;
  storage: {
    /** A database with more bytes than this causes an event; 0: no size causes an event. */
    bytesMax: number;
    /** Free space below this number of bytes causes an event. */
    freeBytesMin: number;
    /** Free space on the database's disk; absent: the database is on another machine. */
    readFreeBytes?: () => Promise<number>;
  };
}

/** Saves a message in the cell of the operator's project, once for each `hash`. Throws `StoreUnavailable`. */
export type SaveElsewhere = (message: Message, hash: string) => Promise<void>;
