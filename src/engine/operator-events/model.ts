import type { Message, Millis, ProjectId } from '../model.ts';
import type { OperatorEventKind } from './kinds.ts';

/** In place of a project: it concerns the whole server. */
export const NO_PROJECT: ProjectId = 0;

/** Something that happened, and is not counted yet. It is saved together with what happened, where that is saved. */
export interface OperatorFact {
  /** Unique among facts: the key of the dead message, or a number taken for it. */
  key: number;
  kind: OperatorEventKind;
  projectId: ProjectId;
  atMs: Millis;
  /** What it happened to: a DLQ id, a schedule, an origin, a worker. Never a body, a secret or a whole URL. */
  example: string;
}

/** What has happened of one kind in one project since the operator was last told. */
export interface Tally {
  kind: OperatorEventKind;
  projectId: ProjectId;
  count: number;
  firstAtMs: Millis;
  lastAtMs: Millis;
  /** The first of them. */
  example: string;
  /** Nothing of this kind and project is told before. */
  quietUntilMs: Millis;
  /** The example that was told last. */
  toldExample?: string;
  /** When it is to be told; absent: not yet. */
  dueAtMs?: Millis;
}

/** When is it told? */
export interface OperatorEventRules {
  /** The fewest that are told, by kind; a kind that is not here is never told. */
  thresholds: Partial<Record<OperatorEventKind, number>>;
  /** How long nothing is told of a kind and project after it was told; also how long fewer than the threshold count. */
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
    /** A larger database is told of; 0: none is. */
    bytesMax: number;
    /** Less free space is told of. */
    freeBytesMin: number;
    /** Free space where the database is; absent: it is elsewhere. */
    readFreeBytes?: () => Promise<number>;
  };
}

/**
 * Saves a message in the cell of the operator's project, once for each `hash`. Throws `StoreUnavailable` while that cell is away.
 */
export type SaveElsewhere = (message: Message, hash: string) => Promise<void>;
