/** What the server's thread and a database thread say to each other: one message each way per flush or read. */
import type { BatchOutcome, WriteCommand } from '../../batch.ts';
import type { ReadMethod, Reads } from '../../reads.ts';

/** What a database thread is started with. */
export interface ThreadOptions {
  path: string;
  /** The writer migrates the database; a reader only ever sees it. */
  role: 'writer' | 'reader';
}

export type Request =
  | { id: number; kind: 'batch'; commands: readonly WriteCommand[] }
  | { id: number; kind: 'read'; method: ReadMethod; args: Reads[ReadMethod]['args'] }
  | { id: number; kind: 'close' };

export type Reply =
  /** The first: the database is open and has the schema. */
  | { kind: 'ready' }
  /** Instead of it: the database cannot be used, with the error's own name. */
  | { kind: 'refused'; name: string; reason: string }
  | { kind: 'outcome'; id: number; outcome: BatchOutcome }
  | { kind: 'answer'; id: number; answer: Reads[ReadMethod]['answer'] }
  | { kind: 'failed'; id: number; failure: 'unavailable' | 'rejected'; reason: string }
  | { kind: 'closed'; id: number }
  /** Nothing more will be answered. */
  | { kind: 'fatal'; reason: string };
