/** The PostgreSQL driver: runs each transaction on its own connection, retries conflicts, and resolves lost commits. */
import type pg from 'pg';
import type { PoolClient } from 'pg';
import { withTimeLimit } from '../../../engine/loops/time-limit.ts';
import type { Clock } from '../../../engine/ports.ts';
import { CommitUnknown, StoreUnavailable } from '../../../engine/store-errors.ts';
import {
  type Driver,
  LockNotFree,
  type Queries,
  type SqlDialect,
  type SqlParam,
  type Transaction,
  type TransactionOptions,
} from '../../driver.ts';
import { Connections } from './connections/connections.ts';
import type { ConnectionPool } from './connections/pool.ts';
import { detectSession, type Session, type TransactionName } from './connections/session.ts';
import { locationOf } from './connections/url.ts';
import type { PostgresContext } from './context.ts';
import { classify, isConflict, isIdleTimeout, isReportedFailure } from './failures.ts';
import { APPEND_ONLY, HOT, LOG_PARTITIONS } from './layout.ts';
import { awaitBoth, awaitLast } from './results.ts';
import { BulkStatements } from './statements/bulk.ts';
import { PostgresTransaction } from './transaction.ts';

interface StartedTransaction {
  session: Session;
  /** Undefined if the outcome of the transaction cannot be queried later. */
  name: TransactionName | undefined;
  /** The time by which the callers must have a result, on the clock of `elapsedMs`. */
  deadlineMs: number;
}

const DIALECT: SqlDialect = {
  manyWriters: true,
  bigint: 'bigint',
  smallint: 'smallint',
  bytes: 'bytea',
  clustered: '',
  hot: HOT,
  appendOnly: APPEND_ONLY,
  logPartitions: LOG_PARTITIONS,
  unpartitionedLogs: { logs: 'logs_default', details: 'log_details_default' },
  // Looks in the schema in which the table would be created. The search path of a transaction has one schema
  // (session.ts).
  isStore: "select 1 as found where to_regclass(quote_ident(current_schema()) || '.migrations') is not null",
  migrationLock: 'select pg_advisory_xact_lock(8732155911)',
};

/** Maximum tries of a transaction that loses conflicts. Each try waits until the transaction that won has ended. */
const TRIES_MAX = 8;
/** Pause between two queries for the outcome of a commit. */
const STATUS_RETRY_MS = 50;
/** Timeout of the last query for an outcome, after the deadline of the transaction. A working server is faster. */
const LAST_STATUS_TIMEOUT_MS = 1_000;

/** Names the isolation level, since the default of the database may differ. */
const BEGIN = 'begin isolation level read committed';
/** Citus forwards a warning of a node as a message of level `debug1`. */
const SHOW_NODE_WARNINGS = "select set_config('client_min_messages', 'debug1', true)";
/** The SQLSTATE of messages below a warning. */
const SUCCESS = '00000';

/**
 * A prepared statement caches its plan. A plan made while a table was empty may be bad after a burst has filled the
 * table. So each connection discards its plans at this interval, which takes a few milliseconds.
 */
const PLAN_LIFETIME_MS = 30_000;

export class PostgresDriver implements Driver {
  readonly dialect = DIALECT;
  readonly #connections: Connections;
  readonly #clock: Clock;
  readonly #nowMs: (() => number) | undefined;
  /** The server ends a write transaction that receives no statement for this long. */
  readonly #idleMaxMs: number;
  readonly #schema: string | undefined;
  /** Detected on the first connection, and again while the database has no schema yet. */
  #session: Session | undefined;
  readonly #bulk = new BulkStatements();

  /** `pool` is a pool that other stores on the same server share. By default, the store has a pool of its own. */
  constructor(context: PostgresContext, pool?: ConnectionPool) {
    this.#clock = context.clock;
    this.#nowMs = context.nowMs;
    this.#connections = new Connections(context, pool);
    const { statementTimeoutMs } = this.#connections;
    this.#idleMaxMs = Math.min(context.idleMs ?? statementTimeoutMs, statementTimeoutMs);
    this.#schema = locationOf(context.url).schema;
  }

  /** Whether the rows are on a node of Citus. False until the first connection. */
  get isRouted(): boolean {
    return this.#session?.isRouted ?? false;
  }

  async transaction<T>(work: (tx: Transaction) => Promise<T>, options: TransactionOptions = {}): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#tryTransaction(work, options);
      } catch (error) {
        // Nothing was written, and the transaction that won has ended, so the loser can run again.
        if (!isConflict(error) || tries === TRIES_MAX) throw classify(error);
      }
    }
  }

  async read<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    const { client, session } = await this.#take();
    try {
      this.#connections.cork(client);
      const started = awaitLast(
        this.#sendAll(client, 'begin isolation level repeatable read read only', session.beginRead),
      );
      const working = work({ query: (text, params) => this.#query(client, text, params) });
      this.#connections.uncork(client);
      const result = await awaitBoth(started, working);
      await client.query('commit');
      client.release();
      return result;
    } catch (error) {
      await this.#releaseAfterFailure(client, error);
      throw classify(error);
    }
  }

  /** Like `read`, and passes the database's time to `work`. */
  readNow<T>(work: (queries: Queries, nowMs: number) => Promise<T>): Promise<T> {
    return this.read(async (queries) => {
      const { clock } = this.#session ?? {};
      const [row] = clock === undefined ? [] : await queries.query<{ now: number }>(clock);
      if (!row) throw new StoreUnavailable('the database has no store yet');
      return work(queries, this.#nowMs?.() ?? row.now);
    });
  }

  /** Runs one statement in PostgreSQL's syntax, outside a transaction. */
  async execute(text: string, values: readonly string[]): Promise<void> {
    const { client } = await this.#take();
    try {
      await this.#connections.sendNative(client, text, values);
      client.release();
    } catch (error) {
      client.release(true);
      throw classify(error);
    }
  }

  async close(): Promise<void> {
    await this.#connections.close();
  }

  async #take(): Promise<{ client: PoolClient; session: Session }> {
    try {
      const client = await this.#connections.take();
      this.#discardOldPlans(client);
      return { client, session: this.#session ?? (await this.#detectSession(client)) };
    } catch (error) {
      throw classify(error);
    }
  }

  async #detectSession(client: PoolClient): Promise<Session> {
    try {
      const session = await detectSession(this.#connections, client, this.#idleMaxMs, this.#schema);
      if (session.isRouted) this.#connections.setRouted();
      if (session.isNamed) this.#session = session;
      return session;
    } catch (error) {
      client.release(true);
      throw error;
    }
  }

  /** Sends `begin` and the statements after it in one pipeline. */
  #sendAll(
    client: PoolClient,
    begin: string,
    texts: readonly string[],
    values: readonly string[] = [],
  ): Promise<pg.QueryResult<TransactionName>>[] {
    const started = client.query<TransactionName>(begin);
    return [started, ...texts.map((text) => this.#connections.sendNative<TransactionName>(client, text, values))];
  }

  #discardOldPlans(client: PoolClient): void {
    if (!this.#connections.prepares) return; // there are no cached plans
    const nowMs = this.#clock.nowMs();
    const { plannedAtMs: times } = this.#connections;
    const plannedAtMs = times.get(client);
    if (plannedAtMs !== undefined && nowMs < plannedAtMs + PLAN_LIFETIME_MS) return;
    times.set(client, nowMs);
    // Nothing awaits the result. If the discard fails, the statements after it fail too.
    if (plannedAtMs !== undefined) void client.query('discard plans').catch(() => {});
  }

  async #tryTransaction<T>(work: (tx: Transaction) => Promise<T>, { lockWaitMs = 0 }: TransactionOptions): Promise<T> {
    const deadlineMs = this.#clock.elapsedMs + this.#connections.timeoutMs;
    const { client, session } = await this.#take();
    const tx = new PostgresTransaction(client, this.#connections, {
      bulk: this.#bulk,
      nowMs: this.#nowMs,
      session,
    });
    let started: pg.QueryResult<TransactionName>;
    let result: T;
    try {
      tx.cork();
      const values = [String(lockWaitMs)];
      const starting = tx.trackBegin(this.#sendAll(client, BEGIN, session.begin, values));
      result = await awaitBoth(
        starting,
        work(tx).finally(() => tx.hasStarted || tx.flush()), // once `begin` is confirmed, writes are sent with the commit
      );
      started = await starting;
    } catch (error) {
      tx.flush();
      await tx.settled();
      const failure = this.#idleTimeoutOf(client) ?? tx.failure ?? error;
      await this.#releaseAfterFailure(client, failure);
      throw failure;
    }
    await this.#commit(client, tx, { session, name: session.isNamed ? started.rows[0] : undefined, deadlineMs });
    return result;
  }

  /** Sends the commit after the pending writes. Resolves only when the commit is certain. */
  async #commit(client: PoolClient, tx: PostgresTransaction, started: StartedTransaction): Promise<void> {
    const { isRouted } = started.session;
    tx.cork();
    if (isRouted) tx.track(this.#connections.sendNative(client, SHOW_NODE_WARNINGS, []));
    const committing = commitOn(client);
    tx.flush();
    let response: CommitResult;
    try {
      [, response] = await Promise.all([tx.settled(), committing]);
    } catch (error) {
      const idleTimeout = this.#idleTimeoutOf(client);
      client.release(true);
      if (idleTimeout !== undefined) throw idleTimeout;
      // Citus may report a failure after the node of the rows has committed.
      if (isReportedFailure(error) && !isRouted) throw error;
      return this.#resolveOutcome(started, error);
    }
    client.release(isServerFailure(tx.failure));
    if (tx.failure !== undefined) throw tx.failure;
    // The server responds with ROLLBACK to the commit of a transaction in which a statement failed.
    if (response.tag !== 'COMMIT')
      throw new StoreUnavailable(`the database responded to a commit with ${response.tag}`);
    if (response.warning !== undefined) return this.#resolveOutcome(started, response.warning);
  }

  /** The error with which the server ended an idle transaction. A commit sent after this error had no effect. */
  #idleTimeoutOf(client: PoolClient): Error | undefined {
    const error = this.#connections.errorOf(client);
    return isIdleTimeout(error) ? error : undefined;
  }

  /** Queries the server for the outcome of a commit whose response was lost or is in doubt, until the deadline. */
  async #resolveOutcome({ session, name, deadlineMs }: StartedTransaction, reason: unknown): Promise<void> {
    do {
      const limitMs = Math.max(LAST_STATUS_TIMEOUT_MS, deadlineMs - this.#clock.elapsedMs);
      const status = name && (await withTimeLimit(this.#clock, limitMs, this.#statusOf(session, name)));
      if (status === 'committed') return;
      if (status === 'aborted') {
        if (isConflict(reason)) throw reason;
        throw new StoreUnavailable('the connection was lost before the commit', { cause: reason });
      }
      if (status === 'forgotten') break;
      await new Promise<void>((resolve) => this.#clock.startTimer(STATUS_RETRY_MS, resolve, 'outside'));
    } while (this.#clock.elapsedMs < deadlineMs);
    throw new CommitUnknown('the connection was lost during the commit, which may have happened', { cause: reason });
  }

  /**
   * Returns `committed` only once the commit is durable, and `forgotten` if the server was restarted or replaced, and
   * does not know the transaction. Returns undefined if the transaction is in progress or its state is unknown.
   */
  async #statusOf({ statusQuery, isRouted }: Session, { xid, server }: TransactionName): Promise<string | undefined> {
    try {
      const client = await this.#connections.take();
      try {
        const [, { rows }, , { tag, warning }] = await Promise.all([
          client.query(BEGIN),
          this.#connections.sendNative<{ same: number; status: string | null }>(client, statusQuery, [xid, server]),
          isRouted ? this.#connections.sendNative(client, SHOW_NODE_WARNINGS, []) : undefined,
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
      return undefined; // the server is not available now
    }
  }

  /** Releases a connection after a failure: to the pool if a rollback succeeds; otherwise the connection is closed. */
  async #releaseAfterFailure(client: PoolClient, error: unknown): Promise<void> {
    if (isServerFailure(error)) {
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

/**
 * Whether the server failed, rather than the statement. The connections to this server are then closed: the server may be
 * shutting down or have become a standby, and a new connection may reach the new primary.
 */
function isServerFailure(error: unknown): boolean {
  const classified = classify(error);
  return !isConflict(error) && classified instanceof StoreUnavailable && !(classified instanceof LockNotFree);
}

interface CommitResult {
  /** The command tag of the server's response: `COMMIT` or `ROLLBACK`. */
  tag: string;
  /** Present if the commit is only on the server's disk: an operator cancelled the wait for a synchronous standby. */
  warning: Error | undefined;
}

async function commitOn(client: PoolClient): Promise<CommitResult> {
  let warning: Error | undefined;
  // The code tells a warning from an informational message. The severity cannot, because it is localized.
  const onNotice = ({ code, message }: { code: string | undefined; message: string | undefined }) => {
    if (code !== SUCCESS) warning = new Error(message);
  };
  client.on('notice', onNotice);
  try {
    const { command } = await client.query('commit');
    return { tag: command, warning };
  } finally {
    client.off('notice', onNotice);
  }
}
