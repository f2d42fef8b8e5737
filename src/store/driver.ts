/**
 * The narrow interface between the store's logic and a database. The logic is written once, in SQL that both SQLite and
 * PostgreSQL run. Each difference between them lies behind one of these methods.
 */
import { StoreUnavailable } from '../engine/store-errors.ts';

/** A value as it is bound or read. Integers are safe integers; JSON is text; bytes are bytes. */
export type SqlValue = string | number | Uint8Array | null;

/** A bound parameter. An array stands for a list, written in the text as `in (??)`. */
export type SqlParam = SqlValue | readonly SqlValue[];

/** `keys and tokens`: for messages and claims. `log entries`: orders those of one millisecond. `queues`: their ids. */
export type NumberSequence = 'keys and tokens' | 'log entries' | 'queues';

export interface Queries {
  /**
   * The rows of one statement in the store's SQL dialect (docs/sql.md): parameters are `?`, lists are `in (??)` or
   * `list (??)`, look-ups are `lookup`, `in list` and `exists lookup`. The text is constant, never assembled from values.
   */
  query<Row extends object>(text: string, params?: readonly SqlParam[]): Promise<Row[]>;
}

export interface Transaction extends Queries {
  /**
   * The rows of `text` for each of `given`, which are its parameters: numbers and texts, no lists. It has an order and a limit of its own.
   * One statement where each costs a message to the database.
   */
  queryEach<Row extends object>(text: string, given: readonly (readonly SqlValue[])[]): Promise<Row[][]>;
  /**
   * The first of `count` consecutive numbers. Once this transaction is committed, no other transaction ever gets them.
   * Until then all others wait for the sequence, so numbers that are needed often are taken in a transaction of their
   * own.
   */
  reserve(sequence: NumberSequence, count: number): Promise<number>;
  /** The database's own clock, Unix time: the one that all workers on it have in common. */
  nowMs(): Promise<number>;
  /**
   * One statement whose effect no caller asks for. It may still be under way when this resolves. Later statements see
   * its effect; if it fails, the transaction fails.
   */
  send(text: string, params?: readonly SqlParam[]): Promise<void>;
  /** One statement; returns how many rows it changed. */
  run(text: string, params?: readonly SqlParam[]): Promise<number>;
  /** One set-based insert of any number of rows; resolves like `send`. */
  insertMany(table: string, columns: readonly string[], rows: readonly (readonly SqlValue[])[]): Promise<void>;
  /** For each of `rows`, sets `columns` where `keyColumn` is its first value. One update; resolves like `send`. */
  updateMany(
    table: string,
    keyColumn: string,
    columns: readonly string[],
    rows: readonly (readonly SqlValue[])[],
  ): Promise<void>;
}

/** How databases differ: in the spelling of the migrations, and in whether transactions run at once. */
export interface SqlDialect {
  /** Whether transactions run at once, here or elsewhere: they must then lock what they share (operations/locks.ts). */
  manyWriters: boolean;
  /** A whole number of up to 53 bits. */
  bigint: string;
  /** A small whole number. */
  smallint: string;
  bytes: string;
  /** Added to the definition of a table whose rows should lie in the order of their primary key. */
  clustered: string;
  /** Added to the definition of a table whose rows are changed and removed all the time. */
  hot: string;
  /** Added to the definition of a table whose rows are written once and removed after a while, many at a time. */
  passing: string;
  /**
   * How the logs are divided by day, so that old entries can be dropped together: what is added to the definitions of both
   * tables, and the tables that are made beside them. Null: rows are deleted.
   */
  logDays: { partitioned: string; tables: readonly string[] } | null;
  /** Tables in which retention deletes row by row: all log tables, or only those outside the tables of days. */
  looseLogs: { logs: string; details: string };
  /** A query with a row where the database has a table `migrations`, which makes it a store. */
  isStore: string;
  /** A statement that keeps other programs from migrating at the same time; null where no other program can. */
  migrationLock: string | null;
}

export interface TransactionOptions {
  /** The longest wait for a lock that another transaction holds. After it, the transaction throws `LockNotFree`. */
  lockWaitMs?: number;
}

/**
 * All methods throw one of three: `StoreUnavailable` (nothing was written, try again), `StoreFatal` (do not trust this
 * database connection any more), or the database's own error (a violated constraint or a malformed statement: a defect
 * of this program).
 */
export interface Driver {
  readonly dialect: SqlDialect;
  /**
   * Commits durably what `work` did, or nothing if it throws. With several writers, each statement sees what others
   * have committed before it. `work` may be run again if the transaction lost a conflict with another one. Never call
   * this inside another transaction: where connections are few, a caller that holds one and waits for a second may wait
   * for ever.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /** Runs `work` on one snapshot of what is committed. */
  read<T>(work: (queries: Queries) => Promise<T>): Promise<T>;
  /** Upkeep, after the callers of a batch were answered. When it throws, that is fatal, but what was committed stays so. */
  maintain?(): void;
  close(): Promise<void>;
}

/** The transaction waited too long for a lock that another one holds. Nothing was written. */
export class LockNotFree extends StoreUnavailable {}

/**
 * The database refuses a statement for a reason that this program does not know. Perhaps it refuses everything, perhaps
 * only the rows of one command.
 */
export class StatementRefused extends StoreUnavailable {}

/**
 * The database failed in such a way that its state on disk is unknown, as after a failed fsync. The only safe way on is
 * to end the process, so that recovery reads what really is on disk. An fsync is never tried again.
 */
export class StoreFatal extends Error {
  constructor(reason: string, options?: ErrorOptions) {
    super(reason, options);
    this.name = 'StoreFatal';
  }
}
