/** The SQLite driver over `node:sqlite`: one connection, synchronous statements, one transaction at a time. */
import { statSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { StoreFull, StoreUnavailable } from '../../../engine/store-errors.ts';
import {
  type Driver,
  type Queries,
  type SqlDialect,
  type SqlParam,
  type SqlValue,
  StoreFatal,
  type Transaction,
} from '../../driver.ts';
import { reserveNumbers } from '../../numbers.ts';
import { toSqlite } from '../../sql/sqlite.ts';

export interface SqliteDriverOptions {
  /** A file, or `:memory:`. */
  path: string;
  /** Opens the database read-only, as a second connection. */
  readOnly?: boolean;
  /** How long to wait for the lock of another process (a backup). Connections of this process never block each other. */
  busyTimeoutMs?: number;
  /** The initial contents of a database in memory, from `SqliteDriver.image`. */
  image?: Uint8Array;
}

const DIALECT: SqlDialect = {
  manyWriters: false,
  bigint: 'integer',
  smallint: 'integer',
  bytes: 'blob',
  clustered: ' without rowid',
  hot: '',
  appendOnly: '',
  logPartitions: null,
  unpartitionedLogs: { logs: 'logs', details: 'log_details' },
  isStore: "select 1 as found from sqlite_schema where name = 'migrations'",
  migrationLock: null,
};

const RESERVE = 'update numbers set next = next + ? where name = ? returning next, until';

const BUSY_TIMEOUT_MS = 5_000;
/** Maximum prepared statements. Their texts are fixed, except for combinations of filters. */
const STATEMENTS_MAX = 256;
/** A checkpoint is due after this many estimated bytes of rows. */
const CHECKPOINT_BYTES = 16 * 1024 * 1024;
/** A checkpoint is also due after this many bytes of the WAL, as estimated from the bytes of rows. */
const CHECKPOINT_WAL_BYTES = 24 * 1024 * 1024;
/** With fewer bytes since the last checkpoint, the size of the WAL file is not read. */
const STAT_BYTES_MIN = 1024 * 1024;
/** A page in the WAL, with its header. */
const FRAME_BYTES = 4096 + 24;
/** The pages that a small transaction touches, as bytes of the WAL. */
const WAL_BYTES_PER_COMMIT = 24 * 1024;
/** If a long read or a burst has made the WAL larger, SQLite truncates the WAL to this size when it restarts the WAL. */
const WAL_BYTES_KEPT = 32 * 1024 * 1024;
/** Page caches in KiB. The operating system caches the file too, so larger caches gain little. */
const WRITER_CACHE_KIB = 16 * 1024;
const READER_CACHE_KIB = 4 * 1024;

export class SqliteDriver implements Driver {
  readonly dialect = DIALECT;
  readonly #db: DatabaseSync;
  readonly #path: string;
  readonly #readOnly: boolean;
  readonly #statements = new Map<string, StatementSync>();
  readonly #queries: Queries;
  readonly #transaction: Transaction;
  /** Settles when the most recently queued work has ended. */
  #lastWork: Promise<unknown> = Promise.resolve();
  #bytesSinceCheckpoint = 0;
  /** WAL bytes per byte of rows, measured at the last checkpoint. */
  #walBytesPerByte = 1;
  /** The frames and the file size of the WAL at the last checkpoint, if a reader kept that checkpoint from completing. */
  #unfinishedCheckpoint = { frames: 0, bytes: 0 };
  #failure: StoreFatal | undefined;

  /** Throws database errors as `classify` returns them, or an error when a pragma had no effect. */
  constructor({ path, readOnly = false, busyTimeoutMs = BUSY_TIMEOUT_MS, image }: SqliteDriverOptions) {
    this.#path = path;
    this.#readOnly = readOnly;
    try {
      this.#db = new DatabaseSync(path, { readOnly, timeout: busyTimeoutMs, enableForeignKeyConstraints: false });
      if (image) this.#db.deserialize(image);
      this.#configure();
    } catch (error) {
      throw classify(error);
    }
    this.#queries = { query: (text, params) => this.#query(text, params) };
    this.#transaction = {
      query: this.#queries.query,
      queryEach: (text, sets) => Promise.all(sets.map((params) => this.#query(text, params))) as Promise<never>,
      nowMs: async () => this.#nowMs(),
      reserve: (sequence, count) => reserveNumbers(this.#queries, RESERVE, sequence, count),
      send: async (text, params = []) => void this.#run(text, params),
      run: async (text, params = []) => this.#run(text, params),
      insertMany: async (table, columns, rows) => this.#insertMany(table, columns, rows),
      updateMany: async (table, keyColumn, columns, rows) => this.#updateMany(table, keyColumn, columns, rows),
    };
  }

  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#runExclusively(() => this.#inTransaction('begin immediate', () => work(this.#transaction)));
  }

  read<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    return this.#runExclusively(() => this.#inTransaction('begin', () => work(this.#queries)));
  }

  /** Closes the database once the work in progress has ended. */
  close(): Promise<void> {
    return this.#runExclusively(async () => {
      this.#statements.clear();
      if (this.#db.isOpen) this.#db.close();
    });
  }

  /** Serializes the database, to initialize another one in memory. Returns undefined on Node older than 24.16. */
  image(): Uint8Array | undefined {
    return 'serialize' in this.#db ? this.#db.serialize() : undefined;
  }

  /** The value of a pragma, as the connection reports it. */
  pragma(name: string): SqlValue | undefined {
    const row = this.#db.prepare(`pragma ${name}`).get() as Record<string, SqlValue> | undefined;
    return row && Object.values(row)[0];
  }

  /**
   * If a checkpoint is due, copies the committed pages into the database file. Call it after the callers of a batch have
   * their results.
   *
   * SQLite's automatic checkpoints are off because they swallow errors: a failed fsync of the database file would go
   * unnoticed, and its pages would be lost when the WAL is reset. This function throws `StoreFatal` instead.
   */
  maintain(): void {
    if (!this.#isCheckpointDue || this.#path === ':memory:' || this.#failure) return;
    const bytes = this.#bytesSinceCheckpoint;
    this.#bytesSinceCheckpoint = 0;
    try {
      const { log, checkpointed } = this.#checkpoint();
      this.#walBytesPerByte = (Math.max(0, log - this.#unfinishedCheckpoint.frames) * FRAME_BYTES) / bytes;
      this.#unfinishedCheckpoint =
        log === checkpointed ? { frames: 0, bytes: 0 } : { frames: log, bytes: walBytes(this.#path) };
    } catch (error) {
      throw this.#recordFailure(classify(error));
    }
  }

  /**
   * Each change of scattered rows, as in a large backlog, writes a whole page, so the WAL grows by far more than the
   * bytes of the rows. SQLite reuses the WAL file after a checkpoint, which is faster than truncating the file and
   * letting it grow again.
   */
  get #isCheckpointDue(): boolean {
    const bytes = this.#bytesSinceCheckpoint;
    if (bytes >= CHECKPOINT_BYTES || bytes * this.#walBytesPerByte >= CHECKPOINT_WAL_BYTES) return true;
    return bytes >= STAT_BYTES_MIN && walBytes(this.#path) > Math.max(WAL_BYTES_KEPT, this.#unfinishedCheckpoint.bytes);
  }

  #configure(): void {
    const cacheKib = this.#readOnly ? READER_CACHE_KIB : WRITER_CACHE_KIB;
    this.#db.exec(`pragma cache_size = -${cacheKib}; pragma temp_store = memory; pragma mmap_size = 0`);
    if (this.#readOnly) return;
    this.#db.exec(
      `pragma journal_mode = wal; pragma synchronous = full; pragma wal_autocheckpoint = 0;
       pragma journal_size_limit = ${WAL_BYTES_KEPT}`,
    );
    // Builds of SQLite have different defaults, and an ineffective pragma reports no error. P1 depends on these two
    // pragmas.
    const expected: [string, SqlValue][] = [
      ['journal_mode', this.#path === ':memory:' ? 'memory' : 'wal'],
      ['synchronous', 2],
    ];
    for (const [name, value] of expected) {
      const actual = this.pragma(name);
      if (actual !== value) throw new Error(`SQLite runs with ${name}=${actual} instead of ${value}`);
    }
  }

  async #runExclusively<T>(work: () => Promise<T>): Promise<T> {
    const previousWork = this.#lastWork;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#lastWork = promise;
    await previousWork;
    try {
      return await work();
    } finally {
      resolve();
    }
  }

  async #inTransaction<T>(begin: string, work: () => Promise<T>): Promise<T> {
    if (this.#failure) throw this.#failure;
    try {
      this.#statement(begin).run();
      const result = await work();
      this.#statement('commit').run();
      this.#bytesSinceCheckpoint += WAL_BYTES_PER_COMMIT;
      return result;
    } catch (error) {
      const classified = classify(error);
      this.#rollback();
      throw this.#recordFailure(classified);
    }
  }

  /** Rolls back, unless the error has already ended the transaction. */
  #rollback(): void {
    if (!this.#db.isOpen || !this.#db.isTransaction) return;
    try {
      this.#db.exec('rollback');
    } catch (error) {
      this.#failure = new StoreFatal('a transaction could not be rolled back', { cause: error });
    }
  }

  #recordFailure(error: unknown): unknown {
    if (error instanceof StoreFatal) this.#failure ??= error;
    return this.#failure ?? error;
  }

  #nowMs(): number {
    const row = this.#statement("select cast(unixepoch('subsec') * 1000 as integer) as now_ms").get();
    return (row as { now_ms: number }).now_ms;
  }

  #query<Row extends object>(text: string, params: readonly SqlParam[] = []): Promise<Row[]> {
    try {
      return Promise.resolve(this.#statement(text).all(...params.map(toBound)) as Row[]);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #run(text: string, params: readonly SqlParam[]): number {
    const { changes } = this.#statement(text).run(...params.map(toBound));
    this.#bytesSinceCheckpoint += Number(changes) * 64;
    return Number(changes);
  }

  #insertMany(table: string, columns: readonly string[], rows: readonly (readonly SqlValue[])[]): void {
    const placeholders = columns.map(() => '?').join(', ');
    const statement = this.#statement(`insert into ${table} (${columns.join(', ')}) values (${placeholders})`);
    for (const row of rows) {
      statement.run(...row);
      this.#bytesSinceCheckpoint += bytesOf(row);
    }
  }

  #updateMany(
    table: string,
    keyColumn: string,
    columns: readonly string[],
    rows: readonly (readonly SqlValue[])[],
  ): void {
    // Uses numbered parameters, since the key comes first in a row and last in the statement.
    const assignments = columns.map((column, index) => `${column} = ?${index + 2}`).join(', ');
    const statement = this.#statement(`update ${table} set ${assignments} where ${keyColumn} = ?1`);
    for (const row of rows) statement.run(...row);
    this.#bytesSinceCheckpoint += rows.length * 64;
  }

  #statement(text: string): StatementSync {
    const cached = this.#statements.get(text);
    if (cached) return cached;
    const statement = this.#db.prepare(toSqlite(text));
    const oldest = this.#statements.keys().next();
    if (this.#statements.size >= STATEMENTS_MAX && !oldest.done) this.#statements.delete(oldest.value);
    this.#statements.set(text, statement);
    return statement;
  }

  #checkpoint(): { log: number; checkpointed: number } {
    return this.#db.prepare('pragma wal_checkpoint(passive)').get() as { log: number; checkpointed: number };
  }
}

/** Size of the write-ahead log of the database at `path`; 0 when there is none. */
export function walBytes(path: string): number {
  return statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}

function toBound(param: SqlParam): SqlValue {
  return Array.isArray(param) ? JSON.stringify(param) : (param as SqlValue);
}

function bytesOf(row: readonly SqlValue[]): number {
  let bytes = 32;
  for (const value of row) {
    if (typeof value === 'string') bytes += value.length;
    else if (value instanceof Uint8Array) bytes += value.byteLength;
  }
  return bytes;
}

// Primary result codes of https://sqlite.org/rescode.html.
const BUSY = 5;
const LOCKED = 6;
const NO_MEMORY = 7;
const READ_ONLY = 8;
const IO_ERROR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANNOT_OPEN = 14;
const NOT_A_DATABASE = 26;
/** The extended code SQLITE_IOERR_SHMSIZE. */
const WAL_INDEX_FULL = 4874;

/** Returns the store error for a database error. Returns other errors unchanged. */
function classify(error: unknown): unknown {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return error;
  // The index of the write-ahead log cannot grow. Nothing was written.
  if (error.errcode === WAL_INDEX_FULL) return new StoreFull('the disk is full', { cause: error });
  switch (error.errcode & 0xff) {
    case FULL:
      return new StoreFull('the disk is full', { cause: error });
    case BUSY:
    case LOCKED:
      return new StoreUnavailable('the database is locked by another process', { cause: error });
    case NO_MEMORY:
      return new StoreUnavailable('the database is out of memory', { cause: error });
    case IO_ERROR:
    case CORRUPT:
    case NOT_A_DATABASE:
    case READ_ONLY:
    case CANNOT_OPEN:
      return new StoreFatal(`the database failed: ${error.message}`, { cause: error });
    default:
      return error;
  }
}
