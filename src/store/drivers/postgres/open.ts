/** Opens the store on PostgreSQL: one of many workers, each with connections of its own. */
import type { Clock } from '../../../engine/ports.ts';
import type { Store, StoreLimits } from '../../../engine/stores.ts';
import { createStore } from '../../create.ts';
import type { GroupCommitOptions } from '../../group-commit.ts';
import { migrate } from '../../migrations/index.ts';
import { PostgresDriver } from './driver.ts';
import { Notices } from './notices.ts';

export interface PostgresStoreOptions {
  /** `postgres://user:password@host:port/database?sslmode=...`. */
  url: string;
  /** For notifications, where `url` leads through a pooler; empty: without, which costs up to a heartbeat of delay. */
  listenUrl?: string;
  /** Connections at once, at most; at least `CONNECTIONS_MIN`. */
  connectionsMax?: number;
  /** Time a statement may take, and the making of a connection. */
  timeoutMs?: number;
  /** False: statements are not kept prepared, for poolers that cannot. */
  prepares?: boolean;
  clock: Clock;
  /** Told once when the database cannot be trusted any more. */
  onFatal: (error: Error) => void;
  /** Default: none. */
  limits?: StoreLimits;
  /** What goes into one transaction; see `GroupCommitOptions`. */
  batch?: Pick<GroupCommitOptions, 'rowsMax' | 'bytesMax' | 'endOfTurn' | 'flushesMax'>;
  /** Unique among the workers. */
  worker: string;
}

/** Two batches, the numbers that each of them takes apart, and a read. */
export const CONNECTIONS_MIN = 5;
const CONNECTIONS_MAX = 10;
const TIMEOUT_MS = 10_000;
/** While one batch waits for the disk the next one runs; more would only make them smaller. */
const FLUSHES_MAX = 2;

/** Throws `StoreUnavailable` while the database is away, and an error named `SchemaTooNew` when a newer program changed it. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const { url, clock, onFatal, limits, batch, worker } = options;
  const { listenUrl = url, connectionsMax = CONNECTIONS_MAX, timeoutMs = TIMEOUT_MS, prepares = true } = options;
  const driver = new PostgresDriver({ url, connectionsMax, timeoutMs, prepares, clock });
  try {
    await migrate(driver);
  } catch (error) {
    await driver.close();
    throw error;
  }
  const send = (text: string, params: string[]) => driver.execute(text, params);
  const notices = new Notices({ listenUrl, timeoutMs, clock, sender: worker, send });
  return createStore(driver, {
    onFatal,
    notices,
    ...(limits && { limits }),
    batch: { flushesMax: FLUSHES_MAX, ...batch },
  });
}
