/** The connection pool of one PostgreSQL database, which all stores of this worker in that database share. */
import pg from 'pg';
import type { Clock } from '../../../../engine/ports.ts';
import type { PostgresContext, ServerContext } from '../context.ts';
import { BoundClient } from './channel-binding.ts';
import type { Encryption } from './encryption.ts';
import { FairSemaphore } from './fair-semaphore.ts';
import { destroyUnlessClosed, streamOf } from './stream.ts';
import { clientOptions } from './url.ts';

const IDLE_MS = 30_000;

export class ConnectionPool {
  readonly timeoutMs: number;
  readonly plannedAtMs = new WeakMap<pg.ClientBase, number>();
  readonly #pool: pg.Pool;
  readonly #encryption: Encryption;
  readonly #clock: Clock;
  readonly #open = new Set<pg.ClientBase>();
  /** The store that has taken each connection. */
  readonly #userOf = new Map<pg.ClientBase, object>();
  readonly #semaphore: FairSemaphore;
  readonly #namesBySchema = new Map<string | undefined, Map<string, string>>();
  /** The error that broke a connection while no statement was running. */
  readonly #errors = new WeakMap<pg.ClientBase, Error>();
  #isClosed = false;

  constructor({ url, connectionsMax, timeoutMs, clock }: ServerContext & Pick<PostgresContext, 'url'>) {
    this.timeoutMs = timeoutMs;
    this.#clock = clock;
    this.#semaphore = new FairSemaphore({ connectionsMax, timeoutMs, clock });
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
    // If an idle connection breaks, the pool opens another one. Without a listener, the error would end the process.
    this.#pool.on('error', () => {});
    // An error that breaks a connection in use rejects the running statement. The listener is added on `connect`, because
    // a server may report in one packet that it is ready and that it shuts down.
    this.#pool.on('connect', (client) => {
      client.on('error', (error) => this.#recordError(client, error));
      this.#open.add(client);
      streamOf(client).once('close', () => this.#open.delete(client));
    });
    this.#pool.on('release', (_, client) => {
      const user = this.#userOf.get(client);
      this.#userOf.delete(client);
      if (this.#isClosed) destroyUnlessClosed(client, this.#clock);
      // Runs after the pool has taken the connection back.
      if (user) queueMicrotask(() => this.#semaphore.release(user));
    });
  }

  /** Takes a connection for `user`, which releases it later. Rejects when no connection is free in time. */
  async take(user: object): Promise<pg.PoolClient> {
    await this.#semaphore.acquire(user);
    try {
      const client = await this.#encryption.connect((ssl) => {
        this.#pool.options.ssl = ssl; // for connections that the pool opens from now on
        return this.#pool.connect();
      });
      this.#userOf.set(client, user);
      return client;
    } catch (error) {
      this.#semaphore.release(user);
      throw error;
    }
  }

  /** The error that broke the connection. Undefined if there was none, or if it rejected a running statement. */
  errorOf(client: pg.ClientBase): Error | undefined {
    return this.#errors.get(client);
  }

  /** The names of prepared statements by their texts. A store that is reopened uses its earlier names. */
  statementNames(schema: string | undefined): Map<string, string> {
    const names = this.#namesBySchema.get(schema) ?? new Map<string, string>();
    this.#namesBySchema.set(schema, names);
    return names;
  }

  /** Whether the last user has left. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** `user` shares the pool from now on. */
  join(user: object): this {
    this.#semaphore.join(user);
    return this;
  }

  /** Ends the use of the pool by `user`. The last user closes the pool. */
  async leave(user: object): Promise<void> {
    if (this.#semaphore.leave(user) > 0) return;
    this.#isClosed = true;
    for (const client of this.#open) if (!this.#userOf.has(client)) destroyUnlessClosed(client, this.#clock);
    await this.#pool.end();
  }

  /** Keeps the first error, which is the cause of later errors. */
  #recordError(client: pg.ClientBase, error: Error): void {
    if (!this.#errors.has(client)) this.#errors.set(client, error);
  }
}
