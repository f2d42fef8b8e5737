/** The connection pool of each PostgreSQL server, which the stores of one worker share. */
import type { ServerContext } from '../context.ts';
import { ListenConnection } from '../listen-connection.ts';
import { FairSemaphore } from './fair-semaphore.ts';
import { ConnectionPool } from './pool.ts';
import { locationOf } from './url.ts';

/** The URL on which to listen for notifications. Differs from the store's URL if that URL leads through a pooler. */
export type ListenTarget = { url: string } | 'off';

/** An empty `listenUrl` disables notifications. */
export function listenTargetOf(listenUrl: string): ListenTarget {
  return listenUrl === '' ? 'off' : { url: listenUrl };
}

/** Maximum stores of one server that a worker migrates and checks at a time, each over its own connection. */
const PREPARING_MAX = 4;

/**
 * Maximum concurrent polls per server of stores that this worker does not serve at the moment. A PostgreSQL session
 * caches the tables of each schema that it has used, a third of a MiB per store. The limit confines these caches to this
 * many sessions.
 */
const POLLS_MAX = 2;

export interface Server {
  pool: ConnectionPool;
  preparing: FairSemaphore;
  polling: FairSemaphore;
  listenConnection: ListenConnection | undefined;
}

export class Servers {
  readonly #context: ServerContext;
  readonly #byUrl = new Map<string, Server>();

  /** `context` applies to each server. */
  constructor(context: ServerContext) {
    this.#context = context;
  }

  /** The connections to the database of a store. All schemas of a database share these connections. */
  at(storeUrl: string, listenAt: ListenTarget = { url: storeUrl }): Server {
    const { url } = locationOf(storeUrl);
    const existing = this.#byUrl.get(url);
    if (existing && !existing.pool.isClosed) return existing;
    const server: Server = {
      pool: new ConnectionPool({ url, ...this.#context }),
      preparing: new FairSemaphore({ ...this.#context, connectionsMax: PREPARING_MAX }),
      polling: new FairSemaphore({ ...this.#context, connectionsMax: POLLS_MAX }),
      listenConnection: listenAt === 'off' ? undefined : new ListenConnection({ ...listenAt, ...this.#context }),
    };
    this.#byUrl.set(url, server);
    return server;
  }
}
