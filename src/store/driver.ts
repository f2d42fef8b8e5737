/**
 * The interface between the store's logic and a database. The logic is written once, in SQL that both SQLite and PostgreSQL
 * run. Each difference between them is behind one of these methods.
 */
import { StoreUnavailable } from '../engine/store-errors.ts';

/** A value as it is bound or read. Integers are safe integers; JSON is text; bytes are bytes. */
export type SqlValue = string | number | Uint8Array | null;

/** A bound parameter. An array is a list, written in the text as `in (??)`. */
export type SqlParam = SqlValue | readonly SqlValue[];

/** `keys and tokens`: of messages and claims. `log entries`: their order within a millisecond. `queues`: their ids. */
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
   * The rows of `text` for each set of parameters: numbers and texts, no lists. `text` has an order and a limit, which hold
   * for each set. One statement, where each statement costs a message to the database.
   */
  queryEach<Row extends object>(text: string, sets: readonly (readonly SqlValue[])[]): Promise<Row[][]>;
  /**
   * The first of `count` consecutive numbers. Once this transaction is committed, no other transaction ever gets them.
   * Until then all others wait for the sequence, so numbers that are often needed are reserved in a separate transaction.
   */
  reserve(sequence: NumberSequence, count: number): Promise<number>;
  /** Unix time of the database's clock, which all its workers share. */
  nowMs(): Promise<number>;
  /**
   * One statement without a result. It may still be under way when this resolves. Later statements see its effect; if it
   * fails, the transaction fails.
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

/** The differences between databases: the spelling of the migrations, and whether transactions run at once. */
export interface SqlDialect {
  /** Whether transactions run at once, of this process or another: they must then lock what they share (locking/locks.ts). */
  manyWriters: boolean;
  /** A whole number of up to 53 bits. */
  bigint: string;
  /** A small whole number. */
  smallint: string;
  bytes: string;
  /** Added to the definition of a table whose rows should be stored in the order of their primary key. */
  clustered: string;
  /** Added to the definition of a table whose rows change all the time. */
  hot: string;
  /** Added to the definition of a table whose rows are written once, and later removed many at a time. */
  passing: string;
  /**
   * The partitions of the logs by day, for dropping old entries together: the addition to the definitions of both tables,
   * and further tables. Null: rows are deleted.
   */
  logDays: { partitioned: string; tables: readonly string[] } | null;
  /** Tables in which retention deletes row by row: all logs, or only the entries that have no partition of their day. */
  looseLogs: { logs: string; details: string };
  /** A query that returns a row if the database has a table `migrations`, which makes it a store. */
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
   * Commits the changes of `work` durably, or nothing if it throws. With several writers, each statement sees what others
   * have committed before it. `work` may run again if the transaction lost a conflict with another one. Never call this
   * inside another transaction: it could deadlock when all connections are in use.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /** Runs `work` on one snapshot of what is committed. */
  read<T>(work: (queries: Queries) => Promise<T>): Promise<T>;
  /** Maintenance, after the callers of a batch have their results. An error is fatal, but undoes no commit. */
  maintain?(): void;
  close(): Promise<void>;
}

/** The transaction waited too long for a lock that another one holds. Nothing was written. */
export class LockNotFree extends StoreUnavailable {}

/**
 * The database refuses a statement for a reason that this program does not know. It may refuse everything, or only the
 * rows of one command.
 */
export class StatementRefused extends StoreUnavailable {}

/**
 * The database failed and its state on disk is unknown, as after a failed fsync. The process must end, so that recovery
 * reads what really is on disk. An fsync is never retried.
 */
export class StoreFatal extends Error {
  constructor(reason: string, options?: ErrorOptions) {
    super(reason, options);
    this.name = 'StoreFatal';
  }
}
