/**
 * A database connection of one process that takes time, fails, and dies with its process at the worst moments.
 *
 * The database survives: committed data is there when the next process starts. Calls of a dead process never return, and
 * no longer reach the database.
 */
import type { Millis } from '../../src/engine/model.ts';
import { CommitUnknown, StoreUnavailable } from '../../src/engine/store-errors.ts';
import type {
  Driver,
  NumberSequence,
  Queries,
  SqlDialect,
  SqlParam,
  SqlValue,
  Transaction,
} from '../../src/store/driver.ts';
import type { SimulatedClock } from '../support/simulated-clock.ts';

/** The moment in a transaction at which the process dies. After the commit, the data is durable, but nobody is notified. */
export type CrashPoint = 'none' | 'before' | 'inside' | 'after commit';

/** The faults of the next transaction. */
export interface TransactionFaults {
  /** The time until the commit, and from the commit until the response arrives. */
  commitMs: Millis;
  responseMs: Millis;
  /** Whether the transaction is rejected before anything is written. */
  unavailable: boolean;
  /** Whether the transaction is committed although the caller gets an error. */
  losesResponse: boolean;
  crash: CrashPoint;
  /** With `crash: 'inside'`: the number of the statement before which the process dies. */
  crashAtStatement: number;
}

/** A log entry, with the code of its state. */
export interface LoggedEvent {
  seq: number;
  messageKey: number;
  state: number;
}

export interface FaultyDriverDeps {
  inner: Driver;
  clock: SimulatedClock;
  /** Resolves when the process is not stopped. */
  awake: () => Promise<void>;
  /** Called with the log entries of each committed transaction. */
  onLogged?: (events: readonly LoggedEvent[]) => void;
  nextFaults: () => TransactionFaults;
  /** Whether the database is unreachable. Default: no. */
  isUnreachable?: () => boolean;
  /** The duration of a read. Default: 0. */
  readMs?: () => Millis;
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

  /** The number of transactions and reads so far. An idle worker makes no calls (P12). */
  get calls(): number {
    return this.#calls;
  }

  die(): void {
    this.#dead = true;
  }

  async transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    this.#calls += 1;
    const fate = this.#deps.nextFaults();
    await this.#wait(fate.commitMs);
    this.#checkReachable();
    if (fate.unavailable) throw new StoreUnavailable('simulated: the database cannot write now');
    if (fate.crash === 'before') await this.#crash(fate.crash);
    const result = await this.#commit(work, fate);
    if (fate.crash === 'after commit') await this.#crash(fate.crash);
    await this.#wait(fate.responseMs);
    if (fate.losesResponse) throw new CommitUnknown('simulated: the answer of the database was lost');
    return result;
  }

  async read<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    this.#calls += 1;
    await this.#wait(this.#deps.readMs?.() ?? 0);
    this.#checkReachable();
    const result = await this.#deps.clock.hold(this.#deps.inner.read(work));
    await this.#wait(0);
    return result;
  }

  /** The database outlives its processes. */
  close(): Promise<void> {
    return Promise.resolve();
  }

  async #commit<T>(work: (tx: Transaction) => Promise<T>, fate: TransactionFaults): Promise<T> {
    const { clock } = this.#deps;
    const nowMs = () => Promise.resolve(clock.wallMs());
    if (fate.crash !== 'inside') {
      let recorded: RecordedTransaction | undefined;
      const result = await this.#transaction((tx) => {
        recorded = new RecordedTransaction(tx, { nowMs });
        return work(recorded);
      });
      this.#deps.onLogged?.(recorded?.logged ?? []);
      return result;
    }
    const died = new Error('simulated: the process died in its transaction');
    try {
      return await this.#transaction(async (tx) => {
        await work(new RecordedTransaction(tx, { nowMs, diesAt: fate.crashAtStatement, error: died }));
        throw died; // the transaction has fewer statements: the process dies just before the commit
      });
    } catch (error) {
      if (error !== died) throw error;
      return await this.#crash(fate.crash);
    }
  }

  #transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#deps.clock.hold(this.#deps.inner.transaction(work));
  }

  #checkReachable(): void {
    if (this.#deps.isUnreachable?.()) throw new StoreUnavailable('simulated: the database cannot be reached');
  }

  async #wait(ms: Millis): Promise<void> {
    if (ms > 0) await new Promise<void>((resolve) => this.#deps.clock.startTimer(ms, resolve));
    await this.#deps.awake();
    if (this.#dead) await never();
  }

  #crash(where: CrashPoint): Promise<never> {
    if (!this.#dead) this.#deps.crash(where);
    return never();
  }
}

/** A transaction in simulated time. Its statements fail with `error` from the `diesAt`-th on. */
class RecordedTransaction implements Transaction {
  readonly logged: LoggedEvent[] = [];
  readonly nowMs: () => Promise<Millis>;
  readonly #inner: Transaction;
  readonly #diesAt: number;
  readonly #error: Error | undefined;
  #statements = 0;

  constructor(
    inner: Transaction,
    { nowMs, diesAt = Infinity, error }: { nowMs: () => Promise<Millis>; diesAt?: number; error?: Error },
  ) {
    this.#inner = inner;
    this.nowMs = nowMs;
    this.#diesAt = diesAt;
    this.#error = error;
  }

  async query<Row extends object>(text: string, params?: readonly SqlParam[]): Promise<Row[]> {
    this.#count();
    return await this.#inner.query<Row>(text, params);
  }

  /** Counts as many statements as SQLite executes. */
  async queryEach<Row extends object>(text: string, given: readonly (readonly SqlValue[])[]): Promise<Row[][]> {
    for (const _ of given) this.#count();
    return await this.#inner.queryEach<Row>(text, given);
  }

  async reserve(sequence: NumberSequence, count: number): Promise<number> {
    this.#count();
    return await this.#inner.reserve(sequence, count);
  }

  async send(text: string, params?: readonly SqlParam[]): Promise<void> {
    this.#count();
    await this.#inner.send(text, params);
  }

  async run(text: string, params?: readonly SqlParam[]): Promise<number> {
    this.#count();
    return await this.#inner.run(text, params);
  }

  async insertMany(table: string, columns: readonly string[], rows: readonly (readonly SqlValue[])[]): Promise<void> {
    this.#count();
    if (table === 'logs') {
      const [seq, key, state] = ['seq', 'message_key', 'state'].map((name) => columns.indexOf(name));
      const valueAt = (row: readonly SqlValue[], at: number | undefined) => Number(row[at ?? -1]);
      for (const row of rows) {
        this.logged.push({ seq: valueAt(row, seq), messageKey: valueAt(row, key), state: valueAt(row, state) });
      }
    }
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

  #count(): void {
    this.#statements += 1;
    if (this.#statements >= this.#diesAt) throw this.#error;
  }
}

function never(): Promise<never> {
  return new Promise(() => {});
}
