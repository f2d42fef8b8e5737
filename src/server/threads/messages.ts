/** The messages between the threads of one process: the main thread, which supervises, and the workers. */
import type { Credentials } from '../../accounts/open-accounts.ts';
import type { Config } from '../../config/table.ts';
import type { Millis, WorkerId } from '../../engine/model.ts';
import type { DatabasePorts } from '../../store/drivers/sqlite/messages.ts';
import type { Reading } from '../../telemetry/metrics/instruments.ts';
import type { PortsToOthers } from './other-threads.ts';

/** The first message to a worker's thread, with which it starts. */
export interface ThreadStart {
  config: Config;
  credentials: Credentials;
  encryptionKey: Uint8Array;
  /** The first thread does the work that is done once for a process. */
  rank: 'first' | 'other';
  others: PortsToOthers;
  /** Ports to the embedded database of the process; absent: the worker opens a store of its own. */
  database?: DatabasePorts;
}

export type ToWorker =
  | { kind: 'listen'; port: number }
  /** Tokens or signing keys have changed in the store. The reply is `refreshed`. */
  | { kind: 'refreshAccounts'; id: number }
  /** All other workers know the tokens and keys that this one has changed, or could not read them. */
  | { kind: 'changeKnown'; id: number; failure?: string }
  /** The reply is `metrics`. */
  | { kind: 'readMetrics'; id: number }
  | { kind: 'stop'; limitMs: Millis };

export type FromWorker =
  /** The first message: the worker delivers. */
  | { kind: 'started'; worker: WorkerId }
  /** Sent instead of `started` or `listening`: a problem that the operator can repair. */
  | { kind: 'refused'; reason: string }
  | { kind: 'listening'; url: string; port: number }
  | { kind: 'refreshed'; id: number; failure?: string }
  | { kind: 'accountsChanged'; id: number }
  | { kind: 'metrics'; id: number; value?: Reading; failure?: string }
  | {
      kind: 'log';
      level: 'debug' | 'info' | 'warn' | 'error';
      event: string;
      fields: Record<string, string | number | boolean>;
    }
  /** The worker's store can no longer be trusted. */
  | { kind: 'fatal'; reason: string }
  /** The last message. */
  | { kind: 'stopped' };
