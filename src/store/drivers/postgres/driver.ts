/**
 * The interface to PostgreSQL: transactions of several workers at once, each on a connection of its own.
 *
 * Statements that only write are sent without waiting for earlier answers. A commit is sent when the answers to all
 * reads are known. If a statement fails, the server rolls back everything, whatever was sent after it.
 */
import type pg from 'pg';
import type { PoolClient } from 'pg';
import type { Clock } from '../../../engine/ports.ts';
import { CommitUnknown, StoreUnavailable } from '../../../engine/store-errors.ts';
import {
  type Driver,
  LockNotFree,
  type NumberSequence,
  type Queries,
  type SqlDialect,
  type SqlParam,
  type SqlValue,
  type Transaction,
  type TransactionOptions,
} from '../../driver.ts';
import { takeNumbers } from '../../numbers.ts';
import { columnArray } from './arrays.ts';
import { type BulkStatement, BulkStatements } from './bulk.ts';
import { type ConnectionOptions, Connections } from './connections.ts';
import { classify, isAnswer, isConflict, isIdleEnd } from './failures.ts';
import { HOT, LOGS_BY_DAY, PASSING } from './layout.ts';
import { RESERVE, SERVER } from './numbers.ts';
import { placeOf } from './pool.ts';

/** How the server names a transaction that has begun. */
interface TransactionName {
  xid: string;
  /** The start of the server that gave the id. */
  server: string;
}

interface Begun {
  name: TransactionName | undefined;
  /** In the time of `elapsedMs`: until then the callers must have an answer. */
  untilMs: number;
}

export interface PostgresDriverOptions extends ConnectionOptions {
  clock: Clock;
  /**
   * The server ends a transaction that hears nothing from this program for this long. The program may be stopped or cut
   * off, while others wait for its locks. If it goes on, it runs the transaction again. Default: `timeoutMs`.
   */
  idleMs?: number;
  /** Default: the server's clock. A test that sets the time gives its own. */
  nowMs?: () => number;
}

const DIALECT: SqlDialect = {
  manyWriters: true,
  bigint: 'bigint',
  smallint: 'smallint',
  bytes: 'bytea',
  clustered: '',
  hot: HOT,
  passing: PASSING,
  logsByDay: LOGS_BY_DAY,
  looseLogs: { logs: 'logs_default', details: 'log_details_default' },
  migrationLock: 'select pg_advisory_xact_lock(8732155911)',
};

/** How often a transaction that lost a conflict is tried. Each try waits until the transaction that won has ended. */
const TRIES_MAX = 8;
/**
 * Asks what became of a transaction. No one reads the message that this emits. It makes this a transaction that writes,
 * so its commit waits until everything before it is as durable as commits must be, on synchronous standbys too.
 */
const LOOK_UP = `select ${SERVER} = $2 as same, case when ${SERVER} = $2 then pg_xact_status(cast($1 as text)::xid8) end as status,
  pg_logical_emit_message(true, 'waypost', '')`;
/** Between two looks at what became of a commit. */
const LOOK_AGAIN_MS = 50;
/** How long the last look may take after the time of the transaction is over: a server that works answers sooner. */
const LAST_LOOK_MS = 1_000;

/**
 * Each of the store's statements has an index made for it. It must use that index right after a burst too, when the
 * planner's statistics are outdated: they may call a table empty, and the planner would then read all of it.
 */
const PLANNER: readonly (readonly [string, string])[] = [
  ['enable_seqscan', 'off'],
  ['enable_bitmapscan', 'off'],
  ['enable_hashjoin', 'off'],
  ['enable_mergejoin', 'off'],
  ['enable_sort', 'off'],
  // In a join, the table with few rows is written first (lookups.ts).
  ['join_collapse_limit', '1'],
  ['jit', 'off'],
  ['plan_cache_mode', 'force_generic_plan'],
];

/** P1: commits must be durable, so `off` becomes `on`. A setting stricter than `on` stays as it is. */
const SYNCHRONOUS = `set_config('synchronous_commit', case current_setting('synchronous_commit')
  when 'off' then 'on' else current_setting('synchronous_commit') end, true)`;

/**
 * A prepared statement keeps its plan. A plan made while a table was empty may be bad after a burst has filled it. So
 * plans are made anew from time to time, which costs each connection a few milliseconds.
 */
const PLANS_KEPT_MS = 30_000;

export class PostgresDriver implements Driver {
  readonly dialect = DIALECT;
  readonly #connections: Connections;
  readonly #clock: Clock;
  readonly #nowMs: (() => number) | undefined;
  readonly #begin: string;
  readonly #beginRead: string;
  readonly #bulk = new BulkStatements();

  constructor({ clock, nowMs, idleMs, ...options }: PostgresDriverOptions) {
    this.#clock = clock;
    this.#nowMs = nowMs;
    this.#connections = new Connections(options);
    const { schema } = placeOf(options.url);
    const settings = schema === undefined ? PLANNER : [['search_path', `"${schema}"`] as const, ...PLANNER];
    const planner = settings.map(([name, value]) => `set_config('${name}', '${value}', true)`).join(', ');
    const { statementTimeoutMs } = this.#connections;
    // The last limit is for a program that is stopped or cut off while an answer is sent to it: no other limit ends
    // that.
    const limits = (mayIdleMs: number) =>
      `set_config('statement_timeout', '${statementTimeoutMs}', true),
       set_config('idle_in_transaction_session_timeout', '${mayIdleMs}', true),
       set_config('tcp_user_timeout', '${statementTimeoutMs}', true)`;
    this.#beginRead = `select ${limits(statementTimeoutMs)}, ${planner}`;
    const mayIdleMs = Math.min(idleMs ?? statementTimeoutMs, statementTimeoutMs);
    this.#begin = `select pg_current_xact_id()::text as xid, ${SERVER} as server, ${SYNCHRONOUS}, ${limits(mayIdleMs)},
       set_config('lock_timeout', $1, true), ${planner}`;
  }

  async transaction<T>(work: (tx: Transaction) => Promise<T>, options: TransactionOptions = {}): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#tryTransaction(work, options);
      } catch (error) {
        // Nothing was written, so the transaction may run again, now that the one that won has ended.
        if (!isConflict(error) || tries === TRIES_MAX) throw classify(error);
      }
    }
  }

  async read<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    const client = await this.#take();
    try {
      const begun = withOthers(
        client.query('begin isolation level repeatable read read only'),
        this.#connections.sendOwn(client, this.#beginRead, []),
      );
      const result = await withOthers(begun, work({ query: (text, params) => this.#query(client, text, params) }));
      await client.query('commit');
      client.release();
      return result;
    } catch (error) {
      await this.#abandon(client, error);
      throw classify(error);
    }
  }

  /** Runs one statement in PostgreSQL's own form, outside a transaction. */
  async execute(text: string, values: readonly string[]): Promise<void> {
    const client = await this.#take();
    try {
      await this.#connections.sendOwn(client, text, values);
      client.release();
    } catch (error) {
      client.release(true);
      throw classify(error);
    }
  }

  async close(): Promise<void> {
    await this.#connections.close();
  }

  async #take(): Promise<PoolClient> {
    try {
      const client = await this.#connections.take();
      this.#forgetOldPlans(client);
      return client;
    } catch (error) {
      throw classify(error);
    }
  }

  #forgetOldPlans(client: PoolClient): void {
    if (!this.#connections.prepares) return; // each statement is planned when it is sent
    const nowMs = this.#clock.nowMs();
    const { plannedAtMs: times } = this.#connections;
    const plannedAtMs = times.get(client);
    if (plannedAtMs !== undefined && nowMs < plannedAtMs + PLANS_KEPT_MS) return;
    times.set(client, nowMs);
    // No one waits for this. If it fails, the statements after it fail too.
    if (plannedAtMs !== undefined) void client.query('discard plans').catch(() => {});
  }

  async #tryTransaction<T>(work: (tx: Transaction) => Promise<T>, { lockWaitMs = 0 }: TransactionOptions): Promise<T> {
    const untilMs = this.#clock.elapsedMs + this.#connections.timeoutMs;
    const client = await this.#take();
    const tx = new PostgresTransaction(client, this.#connections, {
      bulk: this.#bulk,
      nowMs: this.#nowMs,
    });
    let begun: pg.QueryResult<TransactionName>;
    let result: T;
    try {
      tx.hold();
      const begin = client.query('begin isolation level read committed');
      const named = this.#connections.sendOwn<TransactionName>(client, this.#begin, [String(lockWaitMs)]);
      tx.note(begin);
      tx.note(named);
      const beginning = withOthers(begin, named);
      result = await withOthers(
        beginning,
        work(tx).finally(() => tx.flush()),
      );
      begun = await beginning;
    } catch (error) {
      await tx.settled();
      const failure = this.#idleEndOf(client) ?? tx.failure ?? error;
      await this.#abandon(client, failure);
      throw failure;
    }
    await this.#commit(client, tx, { name: begun.rows[0], untilMs });
    return result;
  }

  /** Sends the commit behind all that was written. Resolves only when it is certain. */
  async #commit(client: PoolClient, tx: PostgresTransaction, begun: Begun): Promise<void> {
    const committed = commitOn(client);
    let answer: CommitAnswer;
    try {
      [, answer] = await Promise.all([tx.settled(), committed]);
    } catch (error) {
      const idleEnd = this.#idleEndOf(client);
      client.release(true);
      if (idleEnd !== undefined) throw idleEnd;
      if (isAnswer(error)) throw error;
      return this.#lookUp(begun, error);
    }
    client.release(isServersFault(tx.failure));
    if (tx.failure !== undefined) throw tx.failure;
    // The server says ROLLBACK to the commit of a transaction in which something failed.
    if (answer.tag !== 'COMMIT') throw new StoreUnavailable(`the database answered ${answer.tag} to a commit`);
    if (answer.warning !== undefined) return this.#lookUp(begun, answer.warning);
  }

  /** The error with which the server ended a silent transaction. A commit that was sent after it had no effect. */
  #idleEndOf(client: PoolClient): Error | undefined {
    const end = this.#connections.endOf(client);
    return isIdleEnd(end) ? end : undefined;
  }

  /**
   * The answer to a commit was lost or is in doubt, so this asks the server, which remembers the outcome. The callers
   * have waited for a while already.
   */
  async #lookUp({ name, untilMs }: Begun, reason: unknown): Promise<void> {
    do {
      const limitMs = Math.max(LAST_LOOK_MS, untilMs - this.#clock.elapsedMs);
      const status = name && (await this.#within(limitMs, this.#statusOf(name)));
      if (status === 'committed') return;
      if (status === 'aborted')
        throw new StoreUnavailable('the connection was lost before the commit', { cause: reason });
      if (status === 'forgotten') break;
      await new Promise<void>((resolve) => this.#clock.startTimer(LOOK_AGAIN_MS, resolve, 'outside'));
    } while (this.#clock.elapsedMs < untilMs);
    throw new CommitUnknown('the connection was lost during the commit, which may have happened', { cause: reason });
  }

  /** The answer of `work`; undefined when it takes longer than `limitMs`. */
  async #within<T>(limitMs: number, work: Promise<T>): Promise<T | undefined> {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const timer = this.#clock.startTimer(limitMs, () => resolve(undefined), 'outside');
    const answer = await Promise.race([work, promise]);
    timer.cancel();
    return answer;
  }

  /**
   * `committed` only once the commit is certain to last. Undefined: unknown, or not yet. `forgotten`: the server was
   * restarted or replaced, and does not know the transaction.
   */
  async #statusOf({ xid, server }: TransactionName): Promise<string | undefined> {
    try {
      const client = await this.#connections.take();
      try {
        const [, { rows }, { tag, warning }] = await Promise.all([
          client.query('begin'),
          this.#connections.sendOwn<{ same: number; status: string | null }>(client, LOOK_UP, [xid, server]),
          commitOn(client),
        ]);
        client.release();
        if (tag !== 'COMMIT' || warning !== undefined) return undefined;
        return rows[0]?.same === 1 ? (rows[0].status ?? undefined) : 'forgotten';
      } catch (error) {
        client.release(true);
        throw error;
      }
    } catch {
      return undefined; // the server cannot be asked now
    }
  }

  /** Gives a connection back after a failure: usable again if a rollback succeeds. */
  async #abandon(client: PoolClient, error: unknown): Promise<void> {
    if (isServersFault(error)) {
      client.release(true);
      return;
    }
    try {
      await client.query('rollback');
      client.release();
    } catch {
      client.release(true);
    }
  }

  async #query<Row extends object>(client: PoolClient, text: string, params: readonly SqlParam[] = []): Promise<Row[]> {
    return (await this.#connections.send<Row>(client, text, params)).rows;
  }
}

/** What a transaction gets from its driver. */
interface OfDriver {
  bulk: BulkStatements;
  nowMs: (() => number) | undefined;
}

class PostgresTransaction implements Transaction {
  readonly #client: PoolClient;
  readonly #connections: Connections;
  readonly #bulk: BulkStatements;
  readonly nowMs: Transaction['nowMs'];
  readonly #sent: Promise<unknown>[] = [];
  #isHeld = false;
  /** The first failure of the noted statements. */
  failure: unknown;

  constructor(client: PoolClient, connections: Connections, driver: OfDriver) {
    this.#client = client;
    this.#connections = connections;
    this.#bulk = driver.bulk;
    this.nowMs = async () => driver.nowMs?.() ?? (await this.#readClock());
  }

  /** Resolves when all that was sent is answered. */
  async settled(): Promise<void> {
    await Promise.all(this.#sent);
  }

  /** From now on, sent statements leave together with the next one whose answer is awaited. */
  hold(): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    this.#connections.hold(this.#client);
  }

  flush(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#connections.release(this.#client);
  }

  async query<Row extends object>(text: string, params: readonly SqlParam[] = []): Promise<Row[]> {
    return this.#heard(async () => {
      const answer = this.#connections.send<Row>(this.#client, text, params);
      this.flush();
      return (await answer).rows;
    });
  }

  reserve(sequence: NumberSequence, count: number): Promise<number> {
    return takeNumbers(this, RESERVE, sequence, count);
  }

  async send(text: string, params: readonly SqlParam[] = []): Promise<void> {
    this.hold();
    this.note(this.#connections.send(this.#client, text, params));
  }

  async run(text: string, params: readonly SqlParam[] = []): Promise<number> {
    return this.#heard(async () => {
      const answer = this.#connections.send(this.#client, text, params);
      this.flush();
      return (await answer).rowCount ?? 0;
    });
  }

  async insertMany(table: string, columns: readonly string[], rows: readonly (readonly SqlValue[])[]): Promise<void> {
    if (rows.length > 0) this.#sendRows(await this.#bulk.insert(table, columns, this), rows);
  }

  async updateMany(
    table: string,
    keyColumn: string,
    columns: readonly string[],
    rows: readonly (readonly SqlValue[])[],
  ): Promise<void> {
    if (rows.length > 0) this.#sendRows(await this.#bulk.update(table, keyColumn, columns, this), rows);
  }

  #sendRows({ text, types }: BulkStatement, rows: readonly (readonly SqlValue[])[]): void {
    const values = types.map((type, index) => columnArray(rows, index, type));
    this.hold();
    this.note(this.#connections.sendOwn(this.#client, text, values));
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
    const [row] = await this.query<{ now: number }>(
      'select cast(floor(extract(epoch from clock_timestamp()) * 1000) as bigint) as now',
    );
    if (!row) throw new Error('the database told no time');
    return row.now;
  }

  /** Throws the first failure, which is the reason: later answers only say that the transaction is aborted. */
  async #heard<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      await this.settled();
      this.failure ??= error;
      throw this.failure;
    }
  }
}

/**
 * Whether the server itself is in trouble. Its connections are then not used again: it may be shutting down, or may
 * have become a standby, while a new connection finds the server in charge.
 */
function isServersFault(error: unknown): boolean {
  const meaning = classify(error);
  return !isConflict(error) && meaning instanceof StoreUnavailable && !(meaning instanceof LockNotFree);
}

interface CommitAnswer {
  /** What the server says it did. */
  tag: string;
  /** Present if the commit is only on the server's disk: an operator cancelled its wait for a synchronous standby. */
  warning: Error | undefined;
}

async function commitOn(client: PoolClient): Promise<CommitAnswer> {
  let warning: Error | undefined;
  const note = ({ severity, message }: { severity: string | undefined; message: string | undefined }) => {
    if (severity === 'WARNING') warning = new Error(message);
  };
  client.on('notice', note);
  try {
    const { command } = await client.query('commit');
    return { tag: command, warning };
  } finally {
    client.off('notice', note);
  }
}

/** The result of `second`, once both are done. Rejects with the first failure, and leaves no rejection unhandled. */
async function withOthers<T>(first: Promise<unknown>, second: Promise<T>): Promise<T> {
  const [before, after] = await Promise.allSettled([first, second]);
  if (before.status === 'rejected') throw before.reason;
  if (after.status === 'rejected') throw after.reason;
  return after.value;
}
