/**
 * An open transaction with pipelined statements. Writes are sent without waiting for earlier results. The commit is sent
 * when the results of all reads are known. If a statement fails, the server rolls back everything, including later
 * writes.
 */
import type pg from 'pg';
import type { PoolClient } from 'pg';
import type { NumberSequence, Queries, SqlParam, SqlValue, Transaction } from '../../driver.ts';
import { reserveNumbers } from '../../numbers.ts';
import type { Connections } from './connections/connections.ts';
import type { Session, TransactionName } from './connections/session.ts';
import { isConsequence } from './failures.ts';
import { CHOOSE_SKIPPED, RESERVE, RESERVE_AT } from './numbers.ts';
import { awaitLast } from './results.ts';
import { columnArray } from './statements/arrays.ts';
import type { BulkStatement, BulkStatements } from './statements/bulk.ts';
import { eachStatement } from './statements/each.ts';

interface TransactionContext {
  session: Session;
  bulk: BulkStatements;
  nowMs: (() => number) | undefined;
}

export class PostgresTransaction implements Transaction {
  readonly #client: PoolClient;
  readonly #connections: Connections;
  readonly #bulk: BulkStatements;
  readonly #session: Session;
  #beginResult: Promise<pg.QueryResult<TransactionName>> | undefined;
  readonly nowMs: Transaction['nowMs'];
  readonly #tracked: Promise<unknown>[] = [];
  #isCorked = false;
  /** Whether the server has confirmed `begin`. */
  hasStarted = false;
  /** The error of the first tracked statement that failed. */
  failure: unknown;

  constructor(client: PoolClient, connections: Connections, driver: TransactionContext) {
    this.#client = client;
    this.#connections = connections;
    this.#bulk = driver.bulk;
    this.#session = driver.session;
    this.nowMs = async () => driver.nowMs?.() ?? (await this.#readClock());
  }

  /** Resolves when all sent statements have a result. */
  async settled(): Promise<void> {
    await Promise.all(this.#tracked);
  }

  /** From now on, buffers statements until the next statement whose result is awaited. */
  cork(): void {
    if (this.#isCorked) return;
    this.#isCorked = true;
    this.#connections.cork(this.#client);
  }

  flush(): void {
    if (!this.#isCorked) return;
    this.#isCorked = false;
    this.#connections.uncork(this.#client);
  }

  async query<Row extends object>(text: string, params: readonly SqlParam[] = []): Promise<Row[]> {
    return this.#awaitResult(async () => {
      return (await this.#connections.send<Row>(this.#client, text, params)).rows;
    });
  }

  async queryEach<Row extends object>(text: string, sets: readonly (readonly SqlValue[])[]): Promise<Row[][]> {
    const [first] = sets;
    if (first === undefined) return [];
    const statement = eachStatement(text, first);
    return this.#awaitResult(async () => {
      const sending = this.#connections.sendNative<Row & { nth: number }>(
        this.#client,
        statement.text,
        arraysOf(statement, sets),
      );
      const rows: Row[][] = sets.map(() => []);
      for (const row of (await sending).rows) rows[row.nth - 1]?.push(row);
      return rows;
    });
  }

  reserve(sequence: NumberSequence, count: number): Promise<number> {
    if (!this.#session.isRouted) return reserveNumbers(this, RESERVE, sequence, count);
    // Citus allows no volatile function in an update, so the server and the number to skip are read first.
    const routed: Queries = {
      query: async (text, params = []) => {
        const [chosen] = await this.query<{ skipped: number }>(CHOOSE_SKIPPED);
        return this.query(text, [await this.#server(), chosen?.skipped ?? null, ...params]);
      },
    };
    return reserveNumbers(routed, RESERVE_AT, sequence, count);
  }

  /** Identifies the server that has the rows, by its start time. */
  async #server(): Promise<string> {
    this.flush();
    const [name] = (await this.#beginResult)?.rows ?? [];
    if (!name) throw new Error('the transaction has no name');
    return name.server;
  }

  async send(text: string, params: readonly SqlParam[] = []): Promise<void> {
    this.cork();
    this.track(this.#connections.send(this.#client, text, params));
  }

  async run(text: string, params: readonly SqlParam[] = []): Promise<number> {
    return this.#awaitResult(async () => {
      return (await this.#connections.send(this.#client, text, params)).rowCount ?? 0;
    });
  }

  async insertMany(table: string, columns: readonly string[], rows: readonly (readonly SqlValue[])[]): Promise<void> {
    if (rows.length > 0)
      this.#sendRows(await this.#bulk.insert(table, columns, this, this.#session.insertCondition), rows);
  }

  async updateMany(
    table: string,
    keyColumn: string,
    columns: readonly string[],
    rows: readonly (readonly SqlValue[])[],
  ): Promise<void> {
    if (rows.length > 0) this.#sendRows(await this.#bulk.update(table, keyColumn, columns, this), rows);
  }

  #sendRows(statement: BulkStatement, rows: readonly (readonly SqlValue[])[]): void {
    this.cork();
    this.track(this.#connections.sendNative(this.#client, statement.text, arraysOf(statement, rows)));
  }

  trackBegin(results: readonly Promise<pg.QueryResult<TransactionName>>[]): Promise<pg.QueryResult<TransactionName>> {
    for (const result of results) this.track(result);
    this.#beginResult = awaitLast(results).then((result) => {
      this.hasStarted = true;
      return result;
    });
    return this.#beginResult;
  }

  /** Tracks the result of a statement that is awaited only after later statements are sent, or never. */
  track(result: Promise<unknown>): void {
    const settled = result.catch((error: unknown) => {
      this.failure ??= error;
    });
    this.#tracked.push(settled);
  }

  /** The current time, not the start time of the transaction. */
  async #readClock(): Promise<number> {
    const [row] = await this.query<{ now: number }>(this.#session.clock);
    if (!row) throw new Error('the database returned no time');
    return row.now;
  }

  /**
   * Sends the statement of `work` in one write with all other statements of the same microtask round: a system call costs
   * as much as most statements. Throws the first failure: later results only report that the transaction is aborted.
   */
  async #awaitResult<T>(work: () => Promise<T>): Promise<T> {
    this.cork();
    queueMicrotask(() => this.flush());
    try {
      return await work();
    } catch (error) {
      if (!isConsequence(error)) this.failure ??= error;
      this.flush(); // buffered statements need results too
      await this.settled();
      this.failure ??= error;
      throw this.failure;
    }
  }
}

function arraysOf({ types }: BulkStatement, rows: readonly (readonly SqlValue[])[]): Buffer[] {
  return types.map((type, index) => columnArray(rows, index, type));
}
