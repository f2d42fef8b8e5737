/** The words of operator events (docs/operator-events.md): what happens, what is counted of it, and what is told. */
import type { Saved } from '../messages/accepted.ts';
import type { InProjectAt, Message, Millis, NewMessage, ProjectId } from '../model.ts';
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

export interface OperatorEventStore {
  /** Saves facts that nothing else saves. */
  noteFacts(args: { facts: readonly OperatorFact[] }): Promise<void>;
  /**
   * Counts up to `factsMax` facts. Answers whether there may be more, what is due to be told, and when something is.
   */
  gatherFacts(
    args: OperatorEventRules & { factsMax: number; nowMs: Millis },
  ): Promise<{ hasMore: boolean; due: Tally[]; nextAtMs: Millis | undefined }>;
  /**
   * Saves the message that tells of `tally` and begins to count anew, in one transaction. `stale`, with nothing done:
   * another worker has told of it, or more is counted by now. `projectId`: the operator's.
   */
  tellTally(args: InProjectAt & { tally: Tally; message: NewMessage; quietUntilMs: Millis }): Promise<Saved | 'stale'>;
  /** Begins to count anew, as `tellTally`: the message is saved in another cell. */
  noteTold(args: { tally: Tally; quietUntilMs: Millis }): Promise<void>;
}
