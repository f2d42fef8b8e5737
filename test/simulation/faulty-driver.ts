/**
 * A database connection of one process that takes time, fails, and dies with its process at the worst moments.
 *
 * The database behind it survives: what was committed is there when the next process starts. A dead process's calls
 * never come back, and reach the database no more.
 */
import type { Millis } from '../../src/engine/model.ts';
import type { Clock } from '../../src/engine/ports.ts';
import { StoreUnavailable } from '../../src/engine/stores.ts';
import type { Driver, Queries, SqlDialect, SqlParam, SqlValue, Transaction } from '../../src/store/driver.ts';

/** Where in a transaction the process dies. After the commit: it is durable, and nobody hears of it. */
export type CrashPoint = 'none' | 'before' | 'inside' | 'after commit';

/** What befalls the next transaction. */
export interface Fate {
  /** Time until the database has committed, and then until the caller hears of it. */
  commitMs: Millis;
  answerMs: Millis;
  /** Refused before anything was written. */
  unavailable: boolean;
  crash: CrashPoint;
  /** With `crash: 'inside'`: the statement before which it happens. */
  crashAtStatement: number;
}

export interface FaultyDriverDeps {
  inner: Driver;
  clock: Clock;
  nextFate: () => Fate;
  /** Kills the process that this connection belongs to. */
  crash: (where: CrashPoint) => void;
}

export class FaultyDriver implements Driver {
  readonly dialect: SqlDialect;
  readonly #deps: FaultyDriverDeps;
  #dead = false;
  #calls = 0;

  constructor(deps: FaultyDriverDeps) {
    this.#deps = deps;
    this.dialect = deps.inner.dialect;
  }

  /** Transactions and reads so far: a worker with nothing to do makes none (P12). */
  get calls(): number {
    return this.#calls;
  }

  die(): void {
    this.#dead = true;
  }

  async transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    this.#calls += 1;
    const fate = this.#deps.nextFate();
    await this.#pass(fate.commitMs);
    if (fate.unavailable) throw new StoreUnavailable('simulated: the database cannot write now');
    if (fate.crash === 'before') await this.#crash(fate.crash);
    const result = await this.#commit(work, fate);
    if (fate.crash === 'after commit') await this.#crash(fate.crash);
    await this.#pass(fate.answerMs);
    return result;
  }

  async read<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    this.#calls += 1;
    await this.#pass(0);
    const result = await this.#deps.inner.read(work);
    await this.#pass(0);
    return result;
  }

  /** The database outlives its processes. */
  close(): Promise<void> {
    return Promise.resolve();
  }

  async #commit<T>(work: (tx: Transaction) => Promise<T>, fate: Fate): Promise<T> {
    if (fate.crash !== 'inside') return await this.#deps.inner.transaction(work);
    const died = new Error('simulated: the process died in its transaction');
    try {
      return await this.#deps.inner.transaction(async (tx) => {
        await work(new DyingTransaction(tx, fate.crashAtStatement, died));
        throw died; // it had fewer statements: dies just before the commit
      });
    } catch (error) {
      if (error !== died) throw error;
      return await this.#crash(fate.crash);
    }
  }

  async #pass(ms: Millis): Promise<void> {
    if (ms > 0) await new Promise<void>((resolve) => this.#deps.clock.startTimer(ms, resolve));
    if (this.#dead) await forEver();
  }

  #crash(where: CrashPoint): Promise<never> {
    if (!this.#dead) this.#deps.crash(where);
    return forEver();
  }
}

/** Fails for good from its `diesAt`-th statement on. */
class DyingTransaction implements Transaction {
  readonly #inner: Transaction;
  readonly #diesAt: number;
  readonly #error: Error;
  #statements = 0;

  constructor(inner: Transaction, diesAt: number, error: Error) {
    this.#inner = inner;
    this.#diesAt = diesAt;
    this.#error = error;
  }

  async query<Row extends object>(text: string, params?: readonly SqlParam[]): Promise<Row[]> {
    this.#count();
    return await this.#inner.query<Row>(text, params);
  }

  async queryAtOnce<Row extends object>(text: string, params?: readonly SqlParam[]): Promise<Row[]> {
    this.#count();
    return await this.#inner.queryAtOnce<Row>(text, params);
  }

  async run(text: string, params?: readonly SqlParam[]): Promise<number> {
    this.#count();
    return await this.#inner.run(text, params);
  }

  async insertMany(table: string, columns: readonly string[], rows: readonly (readonly SqlValue[])[]): Promise<void> {
    this.#count();
    await this.#inner.insertMany(table, columns, rows);
  }

  async updateMany(
    table: string,
    keyColumn: string,
    columns: readonly string[],
    rows: readonly (readonly SqlValue[])[],
  ): Promise<void> {
    this.#count();
    await this.#inner.updateMany(table, keyColumn, columns, rows);
  }

  nowMs(): Promise<Millis> {
    return this.#inner.nowMs();
  }

  #count(): void {
    this.#statements += 1;
    if (this.#statements >= this.#diesAt) throw this.#error;
  }
}

function forEver(): Promise<never> {
  return new Promise(() => {});
}
