/** The settings that the parts of a driver on PostgreSQL share. */
import type { Clock } from '../../../engine/ports.ts';

export interface PostgresContext {
  /** `postgres://user:password@host:port/database?sslmode=...`; see connections/url.ts. */
  url: string;
  /** The most connections open at once. */
  connectionsMax: number;
  /** A statement or a connection attempt that takes longer counts as failed, whatever the server did. */
  timeoutMs: number;
  /** False behind a pooler that changes connections between transactions and mixes up prepared statements. */
  prepares: boolean;
  clock: Clock;
  /**
   * The server ends a transaction that receives nothing from this program for this long: the program may be stopped or cut off
   * while others wait for its locks. If the program continues, it runs the transaction again. Default: `timeoutMs`.
   */
  idleMs?: number;
  /** Default: the server's clock. A test that sets the time passes its own. */
  nowMs?: () => number;
}

/** Of all stores of a worker on one server. */
export type ServerContext = Pick<PostgresContext, 'connectionsMax' | 'timeoutMs' | 'clock'>;
