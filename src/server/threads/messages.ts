/** The messages between the main thread of a process and the threads of its workers. */
import type { Credentials } from '../../accounts/open-accounts.ts';
import type { Config } from '../../config/table.ts';
import type { Millis, WorkerId } from '../../engine/model.ts';
import type { DatabasePorts } from '../../store/drivers/sqlite/messages.ts';
import type { Reading } from '../../telemetry/metrics/instruments.ts';
import type { WorkerPorts } from './other-threads.ts';

/** The parameters with which a worker's thread starts. */
export interface ThreadStart {
  config: Config;
  credentials: Credentials;
  encryptionKey: Uint8Array;
  /** The first thread also does the work that is needed once per process. */
  rank: 'first' | 'other';
  others: WorkerPorts;
  /** Ports to the embedded database of the process. If absent, the worker opens a store of its own. */
  database?: DatabasePorts;
}

export type WorkerCommand =
  | { kind: 'listen'; port: number }
  /** Tokens or signing keys have changed in the store. The reply is `refreshed`. */
  | { kind: 'refreshAccounts'; id: number }
  /**
   * The reply to `accountsChanged`: all other workers have read the change, or `failure` says why some worker has not.
   */
  | { kind: 'changeKnown'; id: number; failure?: string }
  /** The reply is `metrics`. */
  | { kind: 'readMetrics'; id: number }
  | { kind: 'stop'; limitMs: Millis };

export type WorkerMessage =
  /** The first message of the thread: the worker delivers. */
  | { kind: 'started'; worker: WorkerId }
  /** Sent instead of `started` or `listening`: an error that the operator can fix. */
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
  /** The store of the worker can no longer be trusted. */
  | { kind: 'fatal'; reason: string }
  /** The last message of the thread. */
  | { kind: 'stopped' };
