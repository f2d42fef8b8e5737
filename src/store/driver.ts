/**
 * The interface between the store's logic and a database. The logic is written once, in a SQL dialect that is translated for
 * SQLite and PostgreSQL. All other differences between them are behind this interface.
 */
import { StoreUnavailable } from '../engine/store-errors.ts';

/** A bound or read value. Integers are safe integers; JSON is text. */
export type SqlValue = string | number | Uint8Array | null;

/** A bound parameter. An array is a list, written in the text as `in (??)`. */
export type SqlParam = SqlValue | readonly SqlValue[];

/** The sequence of message keys and claim tokens, of log entries (their order within a millisecond), or of queue ids. */
export type NumberSequence = 'keys and tokens' | 'log entries' | 'queues';

export interface Queries {
  /**
   * Returns the rows of one statement in the store's SQL dialect (docs/sql.md): parameters are `?`, lists are `in (??)` or
   * `list (??)`, look-ups are `lookup`, `in list` and `exists lookup`. The text is constant, never assembled from values.
   */
  query<Row extends object>(text: string, params?: readonly SqlParam[]): Promise<Row[]>;
}

export interface Transaction extends Queries {
  /**
   * Returns the rows of `text` for each set of parameters, which are numbers and texts, not lists. The order and the
   * limit of `text` apply to each set. Runs as one statement where each statement costs a message to the database.
   */
  queryEach<Row extends object>(text: string, sets: readonly (readonly SqlValue[])[]): Promise<Row[][]>;
  /**
   * Reserves `count` consecutive numbers and returns the first. Once this transaction is committed, no other transaction
   * ever gets these numbers. Until the commit, all other transactions wait for the sequence, so frequent numbers are
   * reserved in a separate transaction.
   */
  reserve(sequence: NumberSequence, count: number): Promise<number>;
  /** The Unix time by the clock of the database, which all workers share. */
  nowMs(): Promise<number>;
  /**
   * Sends one statement without a result. The statement may still be running when the promise resolves. Later statements
   * see its effect; if the statement fails, the transaction fails.
   */
  send(text: string, params?: readonly SqlParam[]): Promise<void>;
  /** Runs one statement; returns the number of changed rows. */
  run(text: string, params?: readonly SqlParam[]): Promise<number>;
  /** Inserts any number of rows with one statement; resolves like `send`. */
  insertMany(table: string, columns: readonly string[], rows: readonly (readonly SqlValue[])[]): Promise<void>;
  /** For each row, sets `columns` where `keyColumn` equals the first value in the row. Resolves like `send`. */
  updateMany(
    table: string,
    keyColumn: string,
    columns: readonly string[],
    rows: readonly (readonly SqlValue[])[],
  ): Promise<void>;
}

/** The differences between databases: the SQL of the migrations, and whether transactions run concurrently. */
export interface SqlDialect {
  /** Whether transactions run concurrently, also of other processes, and take locks (operations/locking/locks.ts). */
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
  appendOnly: string;
  /**
   * Partitions the logs by day, so that old entries are dropped together: the addition to the definitions of both tables,
   * and further statements. Null if the logs have no partitions, and rows are deleted.
   */
  logPartitions: { partitioned: string; tables: readonly string[] } | null;
  /** The tables in which retention deletes row by row: all logs, or only the entries without a partition for their day. */
  unpartitionedLogs: { logs: string; details: string };
  /** A query that returns a row if the database is a store, which has a table `migrations`. */
  isStore: string;
  /** Locks the database against concurrent migrations by other processes; null if no other process can migrate. */
  migrationLock: string | null;
}

export interface TransactionOptions {
  /** The lock timeout, after which the transaction throws `LockNotFree`. 0 or absent means no timeout. */
  lockWaitMs?: number;
}

/**
 * All methods throw one of three errors: `StoreUnavailable` (nothing was written, try again), `StoreFatal` (do not trust this
 * database connection any more), or the database's own error (a violated constraint or a malformed statement: a defect of
 * this program).
 */
export interface Driver {
  readonly dialect: SqlDialect;
  /**
   * Commits the changes of `work` durably, or nothing if `work` throws. The isolation level is read committed where
   * transactions run concurrently. `work` may run again if the transaction lost a conflict with another transaction.
   * Never call this method inside another transaction: both could deadlock when all connections are in use.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /** Runs `work` on one snapshot of the committed data. */
  read<T>(work: (queries: Queries) => Promise<T>): Promise<T>;
  /** Runs maintenance after the callers of a batch have their results. An error is fatal, but undoes no commit. */
  maintain?(): void;
  close(): Promise<void>;
}

/** The transaction waited too long for a lock of another transaction. Nothing was written. */
export class LockNotFree extends StoreUnavailable {}

/**
 * The database refused a statement for a reason that this program does not know. It may refuse every statement, or only the
 * rows of one command.
 */
export class StatementRefused extends StoreUnavailable {}

/**
 * The database failed and its state on disk is unknown, as after a failed fsync. The process must end, so that recovery reads
 * the actual state from disk. An fsync is never retried.
 */
export class StoreFatal extends Error {
  constructor(reason: string, options?: ErrorOptions) {
    super(reason, options);
    this.name = 'StoreFatal';
  }
}
