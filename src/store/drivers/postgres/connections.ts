/** The connections to a PostgreSQL server: how they are made, what they bind and read, and which statements they keep prepared. */
import type { Writable } from 'node:stream';
import pg from 'pg';
import type { SqlParam } from '../../driver.ts';
import { toParameter, toPostgres, unescapeText } from './text.ts';

export interface ConnectionOptions {
  /** `postgres://user:password@host:port/database?sslmode=...`. */
  url: string;
  /** Connections open at once, at most. */
  connectionsMax: number;
  /** A statement, or the making of a connection, that takes longer has failed, whatever became of the server. */
  timeoutMs: number;
  /** False behind a pooler that gives each transaction another connection and cannot keep prepared statements apart. */
  prepares: boolean;
}

/** Statements that one program keeps prepared, at most; texts are fixed but for combinations of filters. */
const PREPARED_MAX = 512;
/** Sent once each, some with a name that is of one day only. */
const DEFINITION = /^\s*(create|alter|drop)\b/;
const IDLE_MS = 30_000;
/** What the server has not ended by itself by then is not waited for: it ends statements this share of `timeoutMs` sooner. */
const GRACE_SHARE = 0.1;

const OID = { bool: 16, bytea: 17, int8: 20, int2: 21, int4: 23, text: 25, name: 19, varchar: 1043, numeric: 1700 };

type Parse = (text: string) => unknown;

/** Values as `SqlValue`s: whole numbers, texts, bytes; a truth value is 0 or 1, as in SQLite. */
const PARSERS = new Map<number, Parse>([
  [OID.bool, (text) => (text === 't' ? 1 : 0)],
  [OID.bytea, parseBytes],
  [OID.int8, Number],
  [OID.int2, Number],
  [OID.int4, Number],
  [OID.numeric, Number],
  [OID.text, unescapeText],
  [OID.name, unescapeText],
  [OID.varchar, unescapeText],
]);

function parseBytes(text: string): Uint8Array {
  const { buffer, byteOffset, byteLength } = Buffer.from(text.slice(2), 'hex');
  return new Uint8Array(buffer, byteOffset, byteLength);
}

const types = { getTypeParser: (oid: number): Parse => PARSERS.get(oid) ?? ((text) => text) };

/** A text of the store as PostgreSQL reads it. */
interface Translated {
  text: string;
  /** Absent: it is parsed anew each time. */
  name?: string;
}

export class Connections {
  readonly #pool: pg.Pool;
  readonly #prepares: boolean;
  readonly #translated = new Map<string, Translated>();
  readonly #names = new Map<string, string>();
  readonly #timeoutMs: number;
  /** What broke a connection while nothing was asked on it. */
  readonly #ends = new WeakMap<pg.ClientBase, Error>();

  constructor({ url, connectionsMax, timeoutMs, prepares }: ConnectionOptions) {
    this.#prepares = prepares;
    this.#timeoutMs = timeoutMs;
    this.#pool = new pg.Pool({
      ...clientOptions(url, timeoutMs),
      query_timeout: timeoutMs,
      max: connectionsMax,
      idleTimeoutMillis: IDLE_MS,
      pipeline: true,
    });
    // A connection that breaks while nobody uses it: the pool makes another one. Unheard, it would end the process.
    this.#pool.on('error', () => {});
    // One that breaks while it is used tells whoever waits for an answer. It must be heard of from its very start, since a
    // server that ends it may say so in the same packet in which it says that it is ready.
    this.#pool.on('connect', (client) => client.on('error', (error) => this.#noteEnd(client, error)));
  }

  get timeoutMs(): number {
    return this.#timeoutMs;
  }

  /** After which the server ends a statement. */
  get statementTimeoutMs(): number {
    return Math.round(this.#timeoutMs * (1 - GRACE_SHARE));
  }

  get prepares(): boolean {
    return this.#prepares;
  }

  /** A connection for one transaction; whoever has it gives it back. Rejects when none is to be had in time. */
  async take(): Promise<pg.PoolClient> {
    return await this.#pool.connect();
  }

  /** Sends a statement; those sent before it on the same connection are done first. */
  async send<Row extends object>(
    client: pg.ClientBase,
    text: string,
    params: readonly SqlParam[],
  ): Promise<pg.QueryResult<Row>> {
    const { text: translated, name } = this.#translate(text);
    return await client.query<Row>({ text: translated, values: params.map(toParameter), ...(name && { name }), types });
  }

  /** The same for a text that is PostgreSQL's own, with parameters as the library takes them. */
  async sendOwn<Row extends object>(
    client: pg.ClientBase,
    text: string,
    values: readonly (string | number | Buffer | null)[],
  ): Promise<pg.QueryResult<Row>> {
    const name = this.#nameOf(text);
    return await client.query<Row>({ text, values: [...values], ...(name && { name }), types });
  }

  /**
   * What is sent from now on waits for `release`, and leaves in one piece with what is sent last. By itself the library makes
   * a system call for each statement, and the server wakes for each.
   */
  hold(client: pg.ClientBase): void {
    streamOf(client).cork();
  }

  /** Sends what was held. */
  release(client: pg.ClientBase): void {
    streamOf(client).uncork();
  }

  /** What comes first is the reason. */
  #noteEnd(client: pg.ClientBase, error: Error): void {
    if (!this.#ends.has(client)) this.#ends.set(client, error);
  }

  /** Why a connection is no more; undefined: it is, as far as is known, or broke under a statement, which was told. */
  endOf(client: pg.ClientBase): Error | undefined {
    return this.#ends.get(client);
  }

  close(): Promise<void> {
    return this.#pool.end();
  }

  #translate(text: string): Translated {
    const known = this.#translated.get(text);
    if (known) return known;
    const translated: Translated = { text: toPostgres(text) };
    const name = this.#nameOf(text);
    if (name !== undefined) translated.name = name;
    if (this.#translated.size < PREPARED_MAX && !DEFINITION.test(text)) this.#translated.set(text, translated);
    return translated;
  }

  #nameOf(text: string): string | undefined {
    if (!this.#prepares || DEFINITION.test(text)) return undefined;
    const known = this.#names.get(text);
    if (known !== undefined || this.#names.size >= PREPARED_MAX) return known;
    const name = `waypost_${this.#names.size}`;
    this.#names.set(text, name);
    return name;
  }
}

/** The library declares the class of its connections, not that a client has one. */
function streamOf(client: pg.ClientBase): Pick<Writable, 'cork' | 'uncork'> {
  return (client as pg.ClientBase & { readonly connection: { readonly stream: Writable } }).connection.stream;
}

/** What all connections have in common. A server that went away without a word is noticed. */
export function clientOptions(url: string, timeoutMs: number): pg.ClientConfig {
  return {
    connectionString: url,
    connectionTimeoutMillis: timeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    fallback_application_name: 'waypost',
  };
}
