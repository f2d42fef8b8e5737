/** What the server's threads and a database thread say to each other: one message each way per flush or read. */
import type { MessagePort } from 'node:worker_threads';
import type { OriginLine } from '../../../engine/lanes/origin-line.ts';
import type { StoreLimits } from '../../../engine/stores.ts';
import type { BatchOutcome } from '../../batches/batch.ts';
import type { ReadMethod, Reads, WriteCommand } from '../../operations/all.ts';
import type { Piece } from './pieces.ts';

/** What a database thread is started with. */
export interface ThreadOptions {
  path: string;
  /** The writer migrates the database; a reader only ever sees it. */
  role: 'writer' | 'reader';
  limits?: StoreLimits;
}

/** What each thread that uses the database asks. */
export type Request =
  /** Not answered: it belongs to the next batch. */
  | Piece
  | { id: number; kind: 'batch'; commands: readonly WriteCommand[] }
  | { id: number; kind: 'read'; method: ReadMethod; args: Reads[ReadMethod]['args'] };

/** What the thread that has started it asks besides. */
export type OwnerRequest =
  | Request
  /** From now on another thread uses it too, over `port`. Answered once it is heard. */
  | { id: number; kind: 'connect'; port: MessagePort }
  | { id: number; kind: 'close' };

export type Reply =
  /** The first: the database is open and has the schema. */
  | { kind: 'ready' }
  /** Instead of it: the database cannot be used, with the error's own name. */
  | { kind: 'refused'; name: string; reason: string }
  | { kind: 'outcome'; id: number; outcome: BatchOutcome }
  | { kind: 'answer'; id: number; answer: Reads[ReadMethod]['answer'] }
  | { kind: 'failed'; id: number; failure: 'unavailable' | 'rejected'; reason: string }
  | { kind: 'done'; id: number }
  /** Unasked: other threads have left something waiting, due sooner than this one knows or in a line it does not know of. */
  | { kind: 'left'; dueAtMs: number | null; waitingLines: OriginLine[] }
  /** Nothing more will be answered. */
  | { kind: 'fatal'; reason: string };

export interface DatabasePorts {
  writer: MessagePort;
  /** Absent for a database in memory, where the writer does everything. */
  lister?: MessagePort;
}
