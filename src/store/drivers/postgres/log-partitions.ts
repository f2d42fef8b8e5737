/**
 * Drops old logs in PostgreSQL by whole days, without deleting rows.
 *
 * `logs` and `log_details` have a partition for each day (UTC), created some days ahead. A day past its retention is
 * detached: from then on no query sees its entries. Entries of several days, unfinished messages and dead messages may
 * share one content. So a worker reads the detached table once, in chunks, deletes the contents that nothing else refers
 * to, and then drops the table. Each step is one transaction, whose result determines the next step. So any worker can
 * continue after another worker has crashed.
 *
 * Partitions may be created late: entries without a partition go to the default partition, whose rows are deleted one by
 * one as on SQLite (operations/retention.ts). When logs are kept for less than a day, all entries go to the default
 * partition.
 */
import type { Millis } from '../../../engine/model.ts';
import { StoreUnavailable } from '../../../engine/store-errors.ts';
import { type Driver, type Queries, StoreFatal, type Transaction } from '../../driver.ts';
import { projectsMoving } from '../../operations/locking/placement.ts';
import { dropUnreferencedContents } from '../../operations/retention.ts';
import { APPEND_ONLY } from './layout.ts';

/** The arguments of `Connection.dropTables`. */
export interface LogBounds {
  logsBeforeMs: Millis;
  nowMs: Millis;
  rowsMax: number;
}

const DAY_MS = 86_400_000;
/** The days that have partitions: behind for late clocks, ahead in case workers can create none for a while. */
const DAYS = { behind: 1, ahead: 3 };
/** Maximum partitions for copied logs. More would slow every query down, and few installations keep logs for longer. */
const COPIED_DAYS_MAX = 400;
/**
 * While a schema change waits for the lock of a table, all other transactions queue behind it. A batch holds its locks
 * for some milliseconds. If another program, such as a dump, holds a lock for longer, the schema change fails and is
 * retried after a pause.
 */
const LOCK_TIMEOUT_MS = 100;
/** To create a partition, the server scans the default partition, which is usually empty. */
const STATEMENT_TIMEOUT_MS = 1_000;
const RETRY_AFTER_MS = 5 * 60_000;

export class LogPartitions {
  readonly #driver: Driver;
  /** The day on which this worker last found that all partitions ahead exist. */
  #createdOn = -Infinity;
  #retryAtMs = -Infinity;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  /**
   * Creates the missing partitions of the days around `nowMs`. Throws `StoreUnavailable` when they cannot be created now.
   * Entries then go into the default partition. A day that already has entries there gets no partition of its own.
   */
  async createAhead(nowMs: Millis): Promise<void> {
    const today = dayOf(nowMs);
    if (today === this.#createdOn) return;
    if (await this.#createDays(today - DAYS.behind, today + DAYS.ahead, nowMs)) this.#createdOn = today;
  }

  /** Tries to create partitions for entries that are about to be copied from another store. */
  async createFor({ fromMs, toMs }: { fromMs: Millis; toMs: Millis }): Promise<void> {
    const last = dayOf(toMs);
    try {
      await this.#createDays(Math.max(dayOf(fromMs), last - COPIED_DAYS_MAX), last, toMs);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    }
  }

  /** Creates partitions ahead, and takes one step to drop expired partitions. Returns whether more steps may be left. */
  async drop({ logsBeforeMs, nowMs, rowsMax }: LogBounds): Promise<boolean> {
    if (nowMs >= this.#retryAtMs) await this.createAhead(nowMs);
    // A move that is copying or comparing rows must still find the expired rows. A move takes minutes.
    if ((await this.#driver.read(projectsMoving)).length > 0) return false;
    const { days, isExpiring } = await this.#driver.read(readLayout);
    if (isExpiring && (await this.dropContents(rowsMax))) return true;
    if (nowMs < this.#retryAtMs) return false;
    if (isExpiring) return this.dropExpired(nowMs);
    const expired = days.find((day) => (day + 1) * DAY_MS <= logsBeforeMs);
    return expired !== undefined && this.detach(expired, nowMs);
  }

  /** Detaches a day: no query sees it any more. Returns false if another worker maintains the partitions now. */
  detach(day: number, nowMs: Millis): Promise<boolean> {
    return this.#changeSchema(nowMs, async (tx) => {
      const { days, isExpiring } = await readLayout(tx);
      if (isExpiring || !days.includes(day)) return;
      await lockLogs(tx);
      await tx.run(`alter table logs detach partition ${tableOf('logs', day)}`);
      await tx.run(`alter table ${tableOf('logs', day)} rename to expired_logs`);
      await tx.run(`drop table if exists ${tableOf('log_details', day)}`);
      await tx.run('update log_expiry set project_id = -1, at_ms = 0, seq = 0');
    });
  }

  /**
   * Reads the next entries of the detached day, and deletes the contents that only these entries refer to. Returns false
   * if no entry is left, or another worker maintains the partitions now.
   */
  dropContents(rowsMax: number): Promise<boolean> {
    return this.#driver.transaction(async (tx) => {
      const position = await lockPosition(tx);
      if (!position || !(await readLayout(tx)).isExpiring) return false;
      const rows = await tx.query<ReadPosition & { message_key: number }>(
        `select project_id, at_ms, seq, message_key from expired_logs
         where (project_id, at_ms, seq) > (?, ?, ?) order by project_id, at_ms, seq limit ?`,
        [position.project_id, position.at_ms, position.seq, rowsMax],
      );
      const last = rows.at(-1);
      if (!last) return false;
      await dropUnreferencedContents(tx, [...new Set(rows.map(({ message_key }) => message_key))]);
      const { project_id, at_ms, seq } = last;
      await tx.run('update log_expiry set project_id = ?, at_ms = ?, seq = ?', [project_id, at_ms, seq]);
      return true;
    });
  }

  /** Drops the detached day if all its entries were read. Returns false if another worker maintains the partitions. */
  dropExpired(nowMs: Millis): Promise<boolean> {
    return this.#changeSchema(nowMs, async (tx, position) => {
      if (!(await readLayout(tx)).isExpiring) return;
      const remaining = await tx.query(
        'select 1 from expired_logs where (project_id, at_ms, seq) > (?, ?, ?) limit 1',
        [position.project_id, position.at_ms, position.seq],
      );
      if (remaining.length === 0) await tx.run('drop table expired_logs');
    });
  }

  /** Creates the missing partitions of these days. Returns false if another worker maintains the partitions now. */
  async #createDays(first: number, last: number, nowMs: Millis): Promise<boolean> {
    const { days } = await this.#driver.read(readLayout);
    for (let day = first; day <= last; day++) {
      if (!days.includes(day) && !(await this.#changeSchema(nowMs, (tx) => createDay(tx, day)))) return false;
    }
    return true;
  }

  /**
   * Runs `work`, a schema change. Returns false if another worker maintains the partitions now. If the change is not
   * possible now, throws `StoreUnavailable` and postpones the next schema change.
   */
  async #changeSchema(
    nowMs: Millis,
    work: (tx: Transaction, position: ReadPosition) => Promise<void>,
  ): Promise<boolean> {
    try {
      return await this.#driver.transaction(async (tx) => {
        await tx.query("select set_config('lock_timeout', ?, true), set_config('statement_timeout', ?, true)", [
          String(LOCK_TIMEOUT_MS),
          String(STATEMENT_TIMEOUT_MS),
        ]);
        const position = await lockPosition(tx);
        if (position) await work(tx, position);
        return position !== undefined;
      });
    } catch (error) {
      if (error instanceof StoreFatal) throw error;
      this.#retryAtMs = nowMs + RETRY_AFTER_MS;
      const detail = error instanceof Error ? error.message : String(error);
      throw new StoreUnavailable('the partitions of the logs could not be changed', { cause: error, detail });
    }
  }
}

/** The last row of the detached day that has been read. */
interface ReadPosition {
  project_id: number;
  at_ms: number;
  seq: number;
}

/** Locks the row of `log_expiry`, and returns its position. Returns undefined if another worker has the lock. */
async function lockPosition(tx: Transaction): Promise<ReadPosition | undefined> {
  const [position] = await tx.query<ReadPosition>(
    'select project_id, at_ms, seq from log_expiry for update skip locked',
  );
  return position;
}

interface Layout {
  /** The days that have a partition, oldest first. */
  days: number[];
  /** Whether a day is detached and not yet dropped. */
  isExpiring: boolean;
}

async function readLayout(queries: Queries): Promise<Layout> {
  const [partitions, [expired]] = await Promise.all([
    queries.query<{ name: string }>(
      `select c.relname as name from pg_inherits i lookup pg_class c on (c.oid = i.inhrelid)
       where i.inhparent = to_regclass('logs') and c.relname ~ '^logs_[0-9]+$'`,
    ),
    queries.query<{ isThere: 0 | 1 }>(`select to_regclass('expired_logs') is not null as "isThere"`),
  ]);
  const days = partitions.map(({ name }) => dayOfTable(name));
  return { days: days.toSorted((a, b) => a - b), isExpiring: expired?.isThere === 1 };
}

/** Whether a day is detached and not yet dropped. Until the drop, some contents may be unreferenced. */
export async function isExpiring(queries: Queries): Promise<boolean> {
  return (await readLayout(queries)).isExpiring;
}

/** Creates both partitions of a day or neither: an entry and its details are in partitions of the same kind. */
async function createDay(tx: Transaction, day: number): Promise<void> {
  const [from, to] = [day * DAY_MS, (day + 1) * DAY_MS];
  const entries = await tx.query('select 1 from logs_default where at_ms >= ? and at_ms < ? limit 1', [from, to]);
  if (entries.length > 0) return;
  await lockLogs(tx);
  for (const table of ['logs', 'log_details'] as const) {
    await tx.run(
      `create table if not exists ${tableOf(table, day)} partition of ${table} for values from (${from}) to (${to})${APPEND_ONLY}`,
    );
  }
}

/** Locks both tables in the order in which all other transactions lock them. */
async function lockLogs(tx: Transaction): Promise<void> {
  await tx.run('lock table only logs, only log_details in access exclusive mode');
}

function dayOf(timeMs: Millis): number {
  return Math.floor(timeMs / DAY_MS);
}

/** The readable name of a day's partition, for example `logs_20270115`. */
function tableOf(table: 'logs' | 'log_details', day: number): string {
  return `${table}_${new Date(day * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '')}`;
}

function dayOfTable(name: string): number {
  const [, year, month, date] = /_(\d+)(\d\d)(\d\d)$/.exec(name) ?? [];
  return Date.UTC(Number(year), Number(month) - 1, Number(date)) / DAY_MS;
}
