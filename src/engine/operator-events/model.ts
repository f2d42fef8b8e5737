import type { Message, Millis, ProjectId } from '../model.ts';
import type { OperatorEventKind } from './kinds.ts';

/** The project of events that concern the whole server. */
export const NO_PROJECT: ProjectId = 0;

/** Something that happened, and is not counted yet. It is saved together with what happened, where that is saved. */
export interface OperatorFact {
  /** Unique among facts: the key of the dead message, or a number taken for it. */
  key: number;
  kind: OperatorEventKind;
  projectId: ProjectId;
  atMs: Millis;
  /** One of the affected objects: a DLQ id, a schedule, an origin, a worker. Never a body, a secret or a whole URL. */
  example: string;
}

/** The facts of one kind in one project since the last event. */
export interface Tally {
  kind: OperatorEventKind;
  projectId: ProjectId;
  count: number;
  firstAtMs: Millis;
  lastAtMs: Millis;
  /** The first of them. */
  example: string;
  /** No event of this kind and project is published before this time. */
  quietUntilMs: Millis;
  /** The example in the latest event. */
  toldExample?: string;
  /** When it is to be told; absent: not yet. */
  dueAtMs?: Millis;
}

/** When is it told? */
export interface OperatorEventRules {
  /** The minimum count of an event, by kind. A kind without one is never published. */
  thresholds: Partial<Record<OperatorEventKind, number>>;
  /** Minimum time between two events of a kind and project; also how long a count below the threshold is kept. */
  quietMs: Millis;
}

/** Operator events as the server is configured for them. */
export interface OperatorEventsOptions extends OperatorEventRules {
  url: string;
  /** The project whose messages they are, and whose keys sign them. */
  projectId: ProjectId;
  projectName: (projectId: ProjectId) => string;
  /** Of one of several cells; undefined while there is only one. */
  cell?: () => { name: string; saveElsewhere: SaveElsewhere } | undefined;
  storage: {
    /** A larger database causes an event; 0: never. */
    bytesMax: number;
    /** Less free space causes an event. */
    freeBytesMin: number;
    /** Free space where the database is; absent: it is elsewhere. */
    readFreeBytes?: () => Promise<number>;
  };
}

/**
 * Saves a message in the cell of the operator's project, once for each `hash`. Throws `StoreUnavailable` while that cell is away.
 */
export type SaveElsewhere = (message: Message, hash: string) => Promise<void>;
