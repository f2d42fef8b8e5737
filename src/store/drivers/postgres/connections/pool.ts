/** Connections to one database of a PostgreSQL server, for all stores of this worker that are there. */
import pg from 'pg';
import type { Clock } from '../../../../engine/ports.ts';
import type { PostgresContext, ServerContext } from '../context.ts';
import { BoundClient } from './channel-binding.ts';
import type { Encryption } from './encryption.ts';
import { FairSemaphore } from './fair-semaphore.ts';
import { cutUnlessEnded, streamOf } from './stream.ts';
import { clientOptions } from './url.ts';

const IDLE_MS = 30_000;

export class ConnectionPool {
  readonly timeoutMs: number;
  readonly plannedAtMs = new WeakMap<pg.ClientBase, number>();
  readonly #pool: pg.Pool;
  readonly #encryption: Encryption;
  readonly #clock: Clock;
  readonly #open = new Set<pg.ClientBase>();
  /** By whom. */
  readonly #taken = new Map<pg.ClientBase, object>();
  readonly #shares: FairSemaphore;
  readonly #namesBySchema = new Map<string | undefined, Map<string, string>>();
  /** The error that broke a connection while no statement was under way. */
  readonly #ends = new WeakMap<pg.ClientBase, Error>();
  #isClosed = false;

  constructor({ url, connectionsMax, timeoutMs, clock }: ServerContext & Pick<PostgresContext, 'url'>) {
    this.timeoutMs = timeoutMs;
    this.#clock = clock;
    this.#shares = new FairSemaphore({ connectionsMax, timeoutMs, clock });
    const { config, encryption, isBound } = clientOptions(url, timeoutMs);
    this.#encryption = encryption;
    this.#pool = new pg.Pool({
      ...config,
      ...(isBound && { Client: BoundClient as new () => BoundClient }),
      query_timeout: timeoutMs,
      max: connectionsMax,
      idleTimeoutMillis: IDLE_MS,
      pipeline: true,
    });
    // An idle connection broke: the pool makes another one. Without a listener, the error would end the process.
    this.#pool.on('error', () => {});
    // An error that breaks a connection in use reaches the caller that waits for an answer. The listener is added at
    // the start: a server may report its end in the same packet that says it is ready.
    this.#pool.on('connect', (client) => {
      client.on('error', (error) => this.#noteEnd(client, error));
      this.#open.add(client);
      streamOf(client).once('close', () => this.#open.delete(client));
    });
    this.#pool.on('release', (_, client) => {
      const user = this.#taken.get(client);
      this.#taken.delete(client);
      if (this.#isClosed) cutUnlessEnded(client, this.#clock);
      // Once the pool has it back.
      if (user) queueMicrotask(() => this.#shares.release(user));
    });
  }

  /** For a store that has joined, or one that is about to. The caller gives it back. Rejects when none is free in time. */
  async take(user: object): Promise<pg.PoolClient> {
    await this.#shares.acquire(user);
    try {
      const client = await this.#encryption.connect((ssl) => {
        this.#pool.options.ssl = ssl; // of connections that the pool makes from now on
        return this.#pool.connect();
      });
      this.#taken.set(client, user);
      return client;
    } catch (error) {
      this.#shares.release(user);
      throw error;
    }
  }

  /**
   * The error that ended the connection. Undefined: it is still open as far as is known, or it broke under a statement,
   * which got the error.
   */
  endOf(client: pg.ClientBase): Error | undefined {
    return this.#ends.get(client);
  }

  /** The names of prepared statements by their texts: a store that is opened again finds those of before it. */
  namesIn(schema: string | undefined): Map<string, string> {
    const names = this.#namesBySchema.get(schema) ?? new Map<string, string>();
    this.#namesBySchema.set(schema, names);
    return names;
  }

  /** Whether its last user has left it. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** One more store uses it. */
  join(user: object): this {
    this.#shares.join(user);
    return this;
  }

  /** A store uses it no more. The last one closes it. */
  async leave(user: object): Promise<void> {
    if (this.#shares.leave(user) > 0) return;
    this.#isClosed = true;
    for (const client of this.#open) if (!this.#taken.has(client)) cutUnlessEnded(client, this.#clock);
    await this.#pool.end();
  }

  /** The first error is the reason; later ones are ignored. */
  #noteEnd(client: pg.ClientBase, error: Error): void {
    if (!this.#ends.has(client)) this.#ends.set(client, error);
  }
}
