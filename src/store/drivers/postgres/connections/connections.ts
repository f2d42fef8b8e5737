/** Sends the statements of one store over the shared pool: translates them, prepares them, binds and parses values. */
import type pg from 'pg';
import { StoreUnavailable } from '../../../../engine/store-errors.ts';
import type { SqlParam } from '../../../driver.ts';
import { type SizeSource, toPostgres } from '../../../sql/postgres.ts';
import type { PostgresContext } from '../context.ts';
import { toParameter, unescapeText } from '../statements/values.ts';
import { ConnectionPool } from './pool.ts';
import { streamOf } from './stream.ts';
import { locationOf } from './url.ts';

/** Maximum prepared statements. Their texts are fixed, except for combinations of filters. */
const PREPARED_MAX = 512;
/** DDL statements are not prepared: each is sent once, and some contain a name that is used on one day only. */
const DDL = /^\s*(create|alter|drop)\b/;
/** The server's statement timeout is shorter than the timeout of this process by this fraction of `timeoutMs`. */
const GRACE_FRACTION = 0.1;

type Parse = (text: string) => unknown;

/**
 * Parses values to `SqlValue`s: whole numbers, texts, bytes. A boolean becomes 0 or 1, as in SQLite. Each transaction
 * pins the settings that change how the server formats values (session.ts). A value in an unexpected format, for example
 * from a server that does not know a setting, is refused: stored bytes are never guessed.
 */
const PARSERS = new Map<number, Parse>([
  [16, parseBoolean], // bool
  [17, parseBytes], // bytea
  [20, parseWhole], // int8
  [21, parseWhole], // int2
  [23, parseWhole], // int4
  [1700, parseNumber], // numeric
  [19, unescapeText], // name
  [25, unescapeText], // text
  [1043, unescapeText], // varchar
  [114, (text) => text], // json, of a plan
  [2278, (text) => text], // void
  [3220, (text) => text], // pg_lsn
]);

function parseBoolean(text: string): 0 | 1 {
  if (text === 't') return 1;
  if (text === 'f') return 0;
  throw unreadable('a boolean');
}

function parseBytes(text: string): Uint8Array {
  const { buffer, byteOffset, byteLength } = Buffer.from(text.slice(2), 'hex'); // stops at the first invalid digit
  if (!text.startsWith('\\x') || text.length !== 2 + byteLength * 2) throw unreadable('bytes');
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function parseWhole(text: string): number {
  const number = Number(text);
  if (text === '' || !Number.isSafeInteger(number)) throw unreadable('a whole number');
  return number;
}

function parseNumber(text: string): number {
  const number = Number(text);
  if (text === '' || !Number.isFinite(number)) throw unreadable('a number');
  return number;
}

function unreadable(what: string): StoreUnavailable {
  return new StoreUnavailable(`the database wrote ${what} in a form that cannot be read: its settings have no effect`);
}

const types = {
  getTypeParser: (oid: number): Parse =>
    PARSERS.get(oid) ??
    (() => {
      throw unreadable(`a value of type ${oid}`);
    }),
};

/** A statement of the store in PostgreSQL's syntax. */
interface TranslatedStatement {
  text: string;
  /** The name of the prepared statement. If absent, the server parses the text each time. */
  name?: string;
}

export class Connections {
  readonly #pool: ConnectionPool;
  readonly #prepares: boolean;
  /** Prefix of the names of prepared statements: the same text refers to other tables in another schema. */
  readonly #prefix: string;
  #size: SizeSource;
  readonly #translated = new Map<string, TranslatedStatement>();
  readonly #names: Map<string, string>;

  /** `pool` is a pool that other stores on the same server share. By default, the store has a pool of its own. */
  constructor(context: PostgresContext, pool = new ConnectionPool(context)) {
    this.#prepares = context.prepares;
    this.#pool = pool.join(this);
    const { schema } = locationOf(context.url);
    this.#names = this.#pool.statementNames(schema);
    this.#size = schema === undefined ? 'ofDatabase' : 'ofSchema';
    this.#prefix = schema === undefined ? 'waypost' : `waypost_${schema}`;
  }

  get timeoutMs(): number {
    return this.#pool.timeoutMs;
  }

  /** The time after which the server ends a statement. */
  get statementTimeoutMs(): number {
    return Math.round(this.timeoutMs * (1 - GRACE_FRACTION));
  }

  get prepares(): boolean {
    return this.#prepares;
  }

  /** Takes a connection for one transaction; the caller releases it. Rejects when no connection is free in time. */
  take(): Promise<pg.PoolClient> {
    return this.#pool.take(this);
  }

  /** When each connection last discarded its plans. Shared, because a discard affects all stores of the pool. */
  get plannedAtMs(): WeakMap<pg.ClientBase, number> {
    return this.#pool.plannedAtMs;
  }

  /** Sends a statement. The server runs the statements of a connection in order. */
  async send<Row extends object>(
    client: pg.ClientBase,
    text: string,
    params: readonly SqlParam[],
  ): Promise<pg.QueryResult<Row>> {
    const { text: translated, name } = this.#translate(text);
    return await client.query<Row>({ text: translated, values: params.map(toParameter), ...(name && { name }), types });
  }

  /** Like `send`, for a text in PostgreSQL's syntax, with parameters in the format of the library. */
  async sendNative<Row extends object>(
    client: pg.ClientBase,
    text: string,
    values: readonly (string | number | Buffer | null)[],
  ): Promise<pg.QueryResult<Row>> {
    const name = this.#nameOf(text);
    return await client.query<Row>({ text, values: [...values], ...(name && { name }), types });
  }

  /**
   * Buffers statements until `uncork`, which sends them in one write. Otherwise the library makes a system call for each
   * statement, and each call wakes up the server.
   */
  cork(client: pg.ClientBase): void {
    streamOf(client).cork();
  }

  /** Sends the buffered statements. */
  uncork(client: pg.ClientBase): void {
    streamOf(client).uncork();
  }

  /** See `ConnectionPool.errorOf`. */
  errorOf(client: pg.ClientBase): Error | undefined {
    return this.#pool.errorOf(client);
  }

  /** Notes that the rows are on a node of Citus: from now on the size of the store is the size of that node. */
  setRouted(): void {
    this.#size = 'ofNode';
  }

  close(): Promise<void> {
    return this.#pool.leave(this);
  }

  #translate(text: string): TranslatedStatement {
    const cached = this.#translated.get(text);
    if (cached) return cached;
    const translated: TranslatedStatement = { text: toPostgres(text, this.#size) };
    const name = this.#nameOf(text);
    if (name !== undefined) translated.name = name;
    if (this.#translated.size < PREPARED_MAX && !DDL.test(text)) this.#translated.set(text, translated);
    return translated;
  }

  #nameOf(text: string): string | undefined {
    if (!this.#prepares || DDL.test(text)) return undefined;
    const cached = this.#names.get(text);
    if (cached !== undefined || this.#names.size >= PREPARED_MAX) return cached;
    const name = `${this.#prefix}_${this.#names.size}`;
    this.#names.set(text, name);
    return name;
  }
}
