/**
 * Manages the connections of deliveries.
 *
 * Each origin (scheme, host, port) has a small pool of connections, so that a slow or dead endpoint can only exhaust its own
 * pool (P9). A connection is one undici `Client` with one socket and one request at a time. Unlike undici's `Pool`, this pool
 * knows whether a socket was used before, and can close a socket that is still connecting. The most recently used
 * connection is reused first, so that the other connections can time out.
 */
import type { Socket } from 'node:net';
import { Client } from 'undici';
import type { ProjectId } from '../engine/model.ts';
import type { Connector } from './connector.ts';
import { ResponseFilter, SLICE_BYTES } from './responses/response-filter.ts';

export interface OriginsOptions {
  connector: Connector;
  connectionsPerOriginMax: number;
  /** Maximum number of pools. Beyond this number, the least recently used idle pool is closed for each new origin. */
  originsMax: number;
  /** Maximum size of a response head, accurate to a few KiB. */
  responseHeaderBytesMax: number;
}

/** An attempt that requests a connection. */
export interface Lessee {
  /** Called once, possibly before `lease` returns; not after `withdraw`. */
  onConnection(connection: Connection): void;
}

/** A `Client` with its socket, for one lessee at a time. The lessee calls `release` or `discard` once. */
export class Connection {
  readonly client: Client;
  readonly #pool: OriginPool;
  /** Complete responses on the current socket. After the first response, the peer may close the socket at any moment. */
  responsesRead = 0;
  leased = true;
  /** The project of the current attempt, set by each lessee. */
  projectId: ProjectId = 0;
  readonly #filter: ResponseFilter;
  #socket: Socket | undefined;
  #discarded = false;

  constructor(pool: OriginPool, { connector, responseHeaderBytesMax }: OriginsOptions) {
    this.#pool = pool;
    this.#filter = new ResponseFilter(responseHeaderBytesMax);
    this.client = new Client(pool.origin, {
      pipelining: 1,
      allowH2: false,
      // The attempt's own deadline covers both times.
      headersTimeout: 0,
      bodyTimeout: 0,
      // Common servers close connections after 5 s. The `Keep-Alive` header of a server takes precedence, up to a minute.
      keepAliveTimeout: 4_000,
      keepAliveMaxTimeout: 60_000,
      // The filter has a lower limit for heads, so only trailers can reach this limit.
      maxHeaderSize: responseHeaderBytesMax + 2 * SLICE_BYTES,
      connect: (options, callback) => {
        this.responsesRead = 0;
        this.#socket = connector({ ...options, projectId: this.projectId }, (error, socket) => {
          if (error !== null || socket === null) {
            callback(error ?? new Error('no socket'), null);
            return;
          }
          this.#filter.attach(socket);
          callback(null, socket);
        });
        // Discarded while the connect was pending.
        if (this.#discarded) this.#socket?.destroy();
      },
    });
    // A leased client reconnects or fails its request by itself. An idle client without a socket is useless.
    this.client.on('disconnect', () => {
      if (!this.leased) this.discard();
    });
  }

  /** Call this when the request is written. */
  expectHead(): void {
    this.#filter.expectHead();
  }

  /** Call this when the head of the final response was read. */
  headRead(): void {
    this.#filter.headRead();
  }

  /**
   * Returns the connection to its pool after a complete response. If the head of the response was repaired, closes the
   * connection.
   */
  release(): void {
    if (this.#filter.wasRepaired) return this.discard();
    this.responsesRead += 1;
    this.#pool.giveBack(this);
  }

  /** Closes the socket in any state, and removes the connection from its pool. */
  discard(): void {
    if (this.#discarded) return;
    this.#pool.remove(this);
    this.close();
  }

  /** Closes the connection and returns a new one for the same lessee, ahead of waiting lessees. */
  replace(): Connection {
    const fresh = this.#pool.replace(this);
    this.close();
    return fresh;
  }

  close(): void {
    this.#discarded = true;
    this.client.destroy(ignore);
    this.#socket?.destroy();
  }
}

/** The connections of one origin, and the attempts that wait for a connection. */
class OriginPool {
  readonly origin: string;
  readonly #options: OriginsOptions;
  readonly #onEmpty: (pool: OriginPool) => void;
  readonly #open = new Set<Connection>();
  readonly #idle: Connection[] = [];
  /** In order of arrival. In a Set, a lessee withdraws in constant time. */
  readonly #waiting = new Set<Lessee>();

  constructor(origin: string, options: OriginsOptions, onEmpty: (pool: OriginPool) => void) {
    this.origin = origin;
    this.#options = options;
    this.#onEmpty = onEmpty;
  }

  get connections(): number {
    return this.#open.size;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  get isIdle(): boolean {
    return this.#idle.length === this.#open.size && this.#waiting.size === 0;
  }

  lease(lessee: Lessee): void {
    const connection = this.#idle.pop();
    if (connection !== undefined) {
      connection.leased = true;
      lessee.onConnection(connection);
    } else if (this.#open.size < this.#options.connectionsPerOriginMax && this.#waiting.size === 0) {
      lessee.onConnection(this.#connect());
    } else {
      this.#waiting.add(lessee);
    }
  }

  withdraw(lessee: Lessee): void {
    this.#waiting.delete(lessee);
  }

  giveBack(connection: Connection): void {
    const next = this.#nextWaiting();
    if (next !== undefined) {
      next.onConnection(connection);
      return;
    }
    connection.leased = false;
    this.#idle.push(connection);
  }

  remove(connection: Connection): void {
    this.#delete(connection);
    // Deferred: if each waiting lessee failed at once, the recursion could overflow the stack.
    if (this.#waiting.size > 0) queueMicrotask(() => this.#serveWaiting());
    else if (this.#open.size === 0) this.#onEmpty(this);
  }

  replace(connection: Connection): Connection {
    this.#delete(connection);
    return this.#connect();
  }

  /** Closes idle connections. The origin is removed with its last connection. */
  closeIdle(): void {
    for (const connection of [...this.#idle]) connection.discard();
  }

  #connect(): Connection {
    const connection = new Connection(this, this.#options);
    this.#open.add(connection);
    return connection;
  }

  #delete(connection: Connection): void {
    this.#open.delete(connection);
    const at = connection.leased ? -1 : this.#idle.indexOf(connection);
    if (at !== -1) this.#idle.splice(at, 1);
  }

  #serveWaiting(): void {
    while (this.#open.size < this.#options.connectionsPerOriginMax) {
      const next = this.#nextWaiting();
      if (next === undefined) break;
      next.onConnection(this.#connect());
    }
    if (this.#open.size === 0 && this.#waiting.size === 0) this.#onEmpty(this);
  }

  #nextWaiting(): Lessee | undefined {
    const [next] = this.#waiting;
    if (next !== undefined) this.#waiting.delete(next);
    return next;
  }
}

/** The pools of all origins in use. An origin without connections has no pool. */
export class Origins {
  readonly #options: OriginsOptions;
  /**
   * In order of creation while there are fewer pools than `originsMax`, because reordering a map takes time. At the maximum, a
   * pool moves to the end when it is used, so that the least recently used pool is first.
   */
  readonly #pools = new Map<string, OriginPool>();
  #latest: OriginPool | undefined;

  constructor(options: OriginsOptions) {
    this.#options = options;
  }

  /** Gives `lessee` a connection to `origin`, now or when a connection is free. */
  lease(origin: string, lessee: Lessee): void {
    this.#poolOf(origin).lease(lessee);
  }

  /** Removes a waiting lessee; no effect once it has a connection. */
  withdraw(origin: string, lessee: Lessee): void {
    this.#pools.get(origin)?.withdraw(lessee);
  }

  stats(): { origins: number; connections: number; waiting: number } {
    let connections = 0;
    let waiting = 0;
    for (const pool of this.#pools.values()) {
      connections += pool.connections;
      waiting += pool.waiting;
    }
    return { origins: this.#pools.size, connections, waiting };
  }

  closeIdle(): void {
    for (const pool of [...this.#pools.values()]) pool.closeIdle();
  }

  #poolOf(origin: string): OriginPool {
    if (this.#latest?.origin === origin) return this.#latest;
    const isFull = this.#pools.size >= this.#options.originsMax;
    let pool = this.#pools.get(origin);
    if (pool === undefined) {
      pool = new OriginPool(origin, this.#options, (empty) => this.#drop(empty));
      if (isFull) this.#evict();
      this.#pools.set(origin, pool);
    } else if (isFull) {
      this.#pools.delete(origin);
      this.#pools.set(origin, pool);
    }
    this.#latest = pool;
    return pool;
  }

  #drop(pool: OriginPool): void {
    if (this.#pools.get(pool.origin) === pool) this.#pools.delete(pool.origin);
    if (this.#latest === pool) this.#latest = undefined;
  }

  /** Closes the least recently used idle pool. The number of pools with attempts is bounded by the limit on attempts in flight. */
  #evict(): void {
    for (const pool of this.#pools.values()) {
      if (!pool.isIdle) continue;
      pool.closeIdle();
      return;
    }
  }
}

function ignore(): void {}
