/** The messages between the server's threads and a database thread: one request and one reply per batch or read. */
import type { MessagePort } from 'node:worker_threads';
import type { BacklogKey } from '../../../engine/lanes/backlog-key.ts';
import type { ClaimToken } from '../../../engine/model.ts';
import type { StoreLimits } from '../../../engine/stores.ts';
import type { BatchOutcome } from '../../batches/batch.ts';
import type { ReadMethod, Reads, WriteCommand } from '../../operations/all.ts';
import type { MessageChunk } from './batch-chunks.ts';

/** The parameters with which a database thread starts. */
export interface ThreadStart {
  path: string;
  /** The writer migrates the database; a reader opens it read-only. */
  role: 'writer' | 'reader';
  limits?: StoreLimits;
}

/** Requests of every thread that uses the database. */
export type Request =
  /** A chunk has no reply: it belongs to the next batch. */
  | MessageChunk
  | { id: number; kind: 'batch'; commands: readonly WriteCommand[] }
  | { id: number; kind: 'read'; method: ReadMethod; args: Reads[ReadMethod]['args'] };

/** Further requests of the thread that started the database thread. */
export type OwnerRequest =
  | Request
  /** Another thread also uses the database, over `port`. The reply comes once the database thread listens there. */
  | { id: number; kind: 'connect'; port: MessagePort }
  | { id: number; kind: 'close' };

export type Reply =
  /** The first message: the database is open and has this program's schema. */
  | { kind: 'ready' }
  /** The first message if the database cannot be used. `name` is the name of the error. */
  | { kind: 'refused'; name: string; reason: string }
  | { kind: 'outcome'; id: number; outcome: BatchOutcome }
  | { kind: 'result'; id: number; result: Reads[ReadMethod]['result'] }
  | { kind: 'failed'; id: number; failure: 'unavailable' | 'rejected'; reason: string }
  | { kind: 'done'; id: number }
  /** Sent without a request: other threads have saved work unknown to this thread, or have cancelled its claims. */
  | { kind: 'notice'; dueAtMs: number | null; waitingBacklogs: BacklogKey[]; cancelledClaims: ClaimToken[] }
  /** The database failed: no more replies follow. */
  | { kind: 'fatal'; reason: string };

export interface DatabasePorts {
  writer: MessagePort;
  /** Absent for a database in memory, where the writer also reads lists. */
  lister?: MessagePort;
}
