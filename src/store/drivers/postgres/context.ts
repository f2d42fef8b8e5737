/** The settings that the modules of the PostgreSQL driver share. */
import type { Clock } from '../../../engine/ports.ts';

export interface PostgresContext {
  /** `postgres://user:password@host:port/database?sslmode=...`; see connections/url.ts. */
  url: string;
  /** Maximum number of open connections. */
  connectionsMax: number;
  /** Timeout of a statement and of a connection attempt. Both then count as failed, even if the server completed them. */
  timeoutMs: number;
  /** Whether to use prepared statements. False behind a pooler in transaction mode that does not support them. */
  prepares: boolean;
  clock: Clock;
  /**
   * The server ends a transaction that receives no statement for this long: this process may be stopped or cut off while
   * other processes wait for its locks. A process that continues afterwards retries the transaction. Default:
   * `timeoutMs`.
   */
  idleMs?: number;
  /** Returns the current time. Default: the server's clock. Tests that control the time pass their own clock. */
  nowMs?: () => number;
}

/** The settings that all stores of a worker on one server share. */
export type ServerContext = Pick<PostgresContext, 'connectionsMax' | 'timeoutMs' | 'clock'>;
