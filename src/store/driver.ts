/**
 * The narrow waist between the store's logic and a database. The logic is written once in SQL that SQLite and
 * PostgreSQL both run; what differs between them lies behind these methods, in one place each.
 */
import { StoreUnavailable } from '../engine/store-errors.ts';

/** A value as it is bound or read. Integers are safe integers; JSON is text; bytes are bytes. */
export type SqlValue = string | number | Uint8Array | null;

/** A bound parameter. An array stands for a list, written in the text as `in (??)`. */
export type SqlParam = SqlValue | readonly SqlValue[];

/** `keys and tokens`: of messages and claims. `log entries`: orders the entries of one millisecond. `queues`: their ids. */
export type NumberSequence = 'keys and tokens' | 'log entries' | 'queues';

export interface Queries {
  /**
   * Rows of one statement. Parameters are `?`, a list is `in (??)`. The text must be fixed, never assembled from
   * values. What locks rows says `for update`, a claim `skip locked` too; a database with a single writer leaves that out.
   *
   * A text says what is looked up by an index for each row that it has, whatever a planner thinks of the tables:
   * `[left] lookup <table> <alias> on (<condition>)` is a join, and `exists lookup (select ...)` a test. What the values of
   * `in list (select ...)` are is found out first.
   */
  query<Row extends object>(text: string, params?: readonly SqlParam[]): Promise<Row[]>;
}

export interface Transaction extends Queries {
  /**
   * The first of `count` consecutive numbers that are given to nobody else, ever, once this transaction is committed. Until
   * then all others wait for the sequence: what is needed often is taken in a transaction of its own.
   */
  reserve(sequence: NumberSequence, count: number): Promise<number>;
  /** The database's own clock, Unix time: the one that all workers on it have in common. */
  nowMs(): Promise<number>;
  /**
   * One statement whose effect nobody asks for. It may be under way still when this resolves: what is asked later sees what
   * it did, and if it fails, so does the transaction.
   */
  send(text: string, params?: readonly SqlParam[]): Promise<void>;
  /** One statement; returns how many rows it changed. */
  run(text: string, params?: readonly SqlParam[]): Promise<number>;
  /** One set-based insert of any number of rows; resolves like `send`. */
  insertMany(table: string, columns: readonly string[], rows: readonly (readonly SqlValue[])[]): Promise<void>;
  /** Sets `columns` of the rows whose `keyColumn` is the first value of each row; one set-based update that resolves like `send`. */
  updateMany(
    table: string,
    keyColumn: string,
    columns: readonly string[],
    rows: readonly (readonly SqlValue[])[],
  ): Promise<void>;
}

/** How databases differ: in the spelling of the migrations, and in whether transactions run at once. */
export interface SqlDialect {
  /** Whether transactions run at once, of this driver and of others: then they must lock what they share (operations/locks.ts). */
  manyWriters: boolean;
  /** A whole number of up to 53 bits. */
  bigint: string;
  /** A small whole number. */
  smallint: string;
  bytes: string;
  /** What follows a table whose rows should lie in the order of their primary key. */
  clustered: string;
  /** What follows a table whose rows are changed and removed all the time. */
  hot: string;
  /** What follows a table whose rows are written once and removed after a while, many at a time. */
  passing: string;
  /** What lays `logs` and `log_details` out so that old entries can be dropped together; empty: their rows are deleted. */
  logsByDay: readonly string[];
  /** Where the entries and details are that retention deletes row by row: all, or those that are in no table of a day. */
  looseLogs: { logs: string; details: string };
  /** What keeps other programs from migrating at the same time; null where nobody else can. */
  migrationLock: string | null;
}

export interface TransactionOptions {
  /** It throws `LockNotFree` instead of waiting longer than this for what another transaction has locked. */
  lockWaitMs?: number;
}

/**
 * All methods throw `StoreUnavailable` (nothing was written, try again), `StoreFatal` (do not trust this database
 * connection any more), or the database's own error (a constraint, a bad statement: that command's fault).
 */
export interface Driver {
  readonly dialect: SqlDialect;
  /**
   * Commits what `work` did, durably, or nothing when it throws. With several writers each statement sees what others have
   * committed before it, and `work` may be run again, when the transaction lost to another one. Never from within another
   * transaction: whoever holds one connection and waits for a second may wait for ever where connections are few.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /** Runs `work` on one snapshot of what is committed. */
  read<T>(work: (queries: Queries) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Another transaction has something locked that was to be had within a time. Nothing was written. */
export class LockNotFree extends StoreUnavailable {
  constructor(reason: string, options?: ErrorOptions) {
    super(reason, options);
    this.name = 'LockNotFree';
  }
}

/**
 * The database failed in a way after which its state on disk is not known, such as a failed fsync. The only safe
 * way on is to end the process and let recovery read what really is on disk; an fsync is never tried again.
 */
export class StoreFatal extends Error {
  constructor(reason: string, options?: ErrorOptions) {
    super(reason, options);
    this.name = 'StoreFatal';
  }
}
