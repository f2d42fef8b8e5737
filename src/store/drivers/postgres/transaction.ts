/**
 * A transaction under way. Statements that only write are sent without waiting for earlier answers. A commit is sent when the
 * answers to all reads are known. If a statement fails, the server rolls back everything, whatever was sent after it.
 */
import type pg from 'pg';
import type { PoolClient } from 'pg';
import type { NumberSequence, Queries, SqlParam, SqlValue, Transaction } from '../../driver.ts';
import { takeNumbers } from '../../numbers.ts';
import { lastOf } from './answers.ts';
import type { Connections } from './connections/connections.ts';
import type { Session, TransactionName } from './connections/session.ts';
import { isConsequence } from './failures.ts';
import { CHOOSE_SKIPPED, RESERVE, RESERVE_AT } from './numbers.ts';
import { columnArray } from './statements/arrays.ts';
import type { BulkStatement, BulkStatements } from './statements/bulk.ts';
import { eachStatement } from './statements/each.ts';

/** What a transaction gets from its driver. */
interface TransactionParts {
  session: Session;
  bulk: BulkStatements;
  nowMs: (() => number) | undefined;
}

export class PostgresTransaction implements Transaction {
  readonly #client: PoolClient;
  readonly #connections: Connections;
  readonly #bulk: BulkStatements;
  readonly #session: Session;
  #begun: Promise<pg.QueryResult<TransactionName>> | undefined;
  readonly nowMs: Transaction['nowMs'];
  readonly #sent: Promise<unknown>[] = [];
  #isCorked = false;
  /** The server has answered to its begin. */
  hasBegun = false;
  /** The first failure of the noted statements. */
  failure: unknown;

  constructor(client: PoolClient, connections: Connections, driver: TransactionParts) {
    this.#client = client;
    this.#connections = connections;
    this.#bulk = driver.bulk;
    this.#session = driver.session;
    this.nowMs = async () => driver.nowMs?.() ?? (await this.#readClock());
  }

  /** Resolves when all that was sent is answered. */
  async settled(): Promise<void> {
    await Promise.all(this.#sent);
  }

  /** From now on, sent statements leave together with the next one whose answer is awaited. */
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
    return this.#answered(async () => {
      const answer = this.#connections.send<Row>(this.#client, text, params);
      return (await answer).rows;
    });
  }

  async queryEach<Row extends object>(text: string, given: readonly (readonly SqlValue[])[]): Promise<Row[][]> {
    const [first] = given;
    if (first === undefined) return [];
    const statement = eachStatement(text, first);
    return this.#answered(async () => {
      const answer = this.#connections.sendOwn<Row & { nth: number }>(
        this.#client,
        statement.text,
        arraysOf(statement, given),
      );
      const rows: Row[][] = given.map(() => []);
      for (const row of (await answer).rows) rows[row.nth - 1]?.push(row);
      return rows;
    });
  }

  reserve(sequence: NumberSequence, count: number): Promise<number> {
    if (!this.#session.isRouted) return takeNumbers(this, RESERVE, sequence, count);
    // Citus changes a row by no function that it would have to compute elsewhere: the server and what is skipped are values.
    const given: Queries = {
      query: async (text, params = []) => {
        const [chosen] = await this.query<{ skipped: number }>(CHOOSE_SKIPPED);
        return this.query(text, [await this.#server(), chosen?.skipped ?? null, ...params]);
      },
    };
    return takeNumbers(given, RESERVE_AT, sequence, count);
  }

  /** The start of the server that has the rows. */
  async #server(): Promise<string> {
    this.flush();
    const [name] = (await this.#begun)?.rows ?? [];
    if (!name) throw new Error('the transaction has no name');
    return name.server;
  }

  async send(text: string, params: readonly SqlParam[] = []): Promise<void> {
    this.cork();
    this.note(this.#connections.send(this.#client, text, params));
  }

  async run(text: string, params: readonly SqlParam[] = []): Promise<number> {
    return this.#answered(async () => {
      const answer = this.#connections.send(this.#client, text, params);
      return (await answer).rowCount ?? 0;
    });
  }

  async insertMany(table: string, columns: readonly string[], rows: readonly (readonly SqlValue[])[]): Promise<void> {
    if (rows.length > 0) this.#sendRows(await this.#bulk.insert(table, columns, this, this.#session.insertsIf), rows);
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
    this.note(this.#connections.sendOwn(this.#client, statement.text, arraysOf(statement, rows)));
  }

  noteBegin(answers: readonly Promise<pg.QueryResult<TransactionName>>[]): Promise<pg.QueryResult<TransactionName>> {
    for (const answer of answers) this.note(answer);
    this.#begun = lastOf(answers).then((answer) => {
      this.hasBegun = true;
      return answer;
    });
    return this.#begun;
  }

  /** Keeps the answer to a statement for which no one waits, or after which others are sent before it comes. */
  note(answer: Promise<unknown>): void {
    const sent = answer.catch((error: unknown) => {
      this.failure ??= error;
    });
    this.#sent.push(sent);
  }

  /** The time at this moment, not when the transaction began. */
  async #readClock(): Promise<number> {
    const [row] = await this.query<{ now: number }>(this.#session.clock);
    if (!row) throw new Error('the database told no time');
    return row.now;
  }

  /**
   * Asks with what else is asked in the same turn, in one piece: a system call costs as much as most statements. Throws the first
   * failure, which is the reason: later answers only say that the transaction is aborted.
   */
  async #answered<T>(work: () => Promise<T>): Promise<T> {
    this.cork();
    queueMicrotask(() => this.flush());
    try {
      return await work();
    } catch (error) {
      if (!isConsequence(error)) this.failure ??= error;
      this.flush(); // what is held is waited for too
      await this.settled();
      this.failure ??= error;
      throw this.failure;
    }
  }
}

function arraysOf({ types }: BulkStatement, rows: readonly (readonly SqlValue[])[]): Buffer[] {
  return types.map((type, index) => columnArray(rows, index, type));
}
