/** What the threads of one process say to each other: the main one, which supervises, and the workers. */
import type { Credentials } from '../../accounts/open-accounts.ts';
import type { Config } from '../../config/table.ts';
import type { Millis, WorkerId } from '../../engine/model.ts';
import type { DatabasePorts } from '../../store/drivers/sqlite/messages.ts';

/** What a worker's thread is started with. */
export interface ThreadOptions {
  config: Config;
  credentials: Credentials;
  encryptionKey: Uint8Array;
  /** One of them does what is done once. */
  rank: 'first' | 'other';
  /** To the embedded database of the process; absent: it opens a store of its own. */
  database?: DatabasePorts;
}

export type ToWorker =
  | { kind: 'listen'; port: number }
  /** Tokens or signing keys have changed in the store. Answered with `refreshed`. */
  | { kind: 'refreshAccounts'; id: number }
  /** All others know the keys that it has rotated, or could not read them. */
  | { kind: 'rotationKnown'; id: number; failure?: string }
  | { kind: 'stop'; limitMs: Millis };

export type FromWorker =
  /** The first: it delivers. */
  | { kind: 'started'; worker: WorkerId }
  /** Instead of it, or of `listening`: the operator can mend it. */
  | { kind: 'refused'; reason: string }
  | { kind: 'listening'; url: string; port: number }
  | { kind: 'refreshed'; id: number; failure?: string }
  | { kind: 'rotated'; id: number }
  | {
      kind: 'log';
      level: 'debug' | 'info' | 'warn' | 'error';
      event: string;
      fields: Record<string, string | number | boolean>;
    }
  /** Its store cannot be trusted any more. */
  | { kind: 'fatal'; reason: string }
  /** The last. */
  | { kind: 'stopped' };
