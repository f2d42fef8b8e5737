/**
 * How do old logs leave PostgreSQL without a row of them being deleted?
 *
 * `logs` and `log_details` have a partition for each day (UTC), made some days ahead. A day that is past its time is
 * detached: from then on nobody sees it. What was published is shared by the entries of several days and by what is
 * unfinished or dead, so the detached table is walked through once, in pieces, for the contents that nothing else refers
 * to; then it is dropped. Each step is one transaction and is found by what the last one left, so that any worker
 * goes on after a crash of another.
 *
 * Nothing rests on the partitions being there in time: what finds none is in the default one, whose rows are deleted as on
 * SQLite (operations/retention.ts); and so are all, where they are kept for less than a day.
 */
import type { Millis } from '../../../engine/model.ts';
import { StoreUnavailable } from '../../../engine/store-errors.ts';
import { type Driver, type Queries, StoreFatal, type Transaction } from '../../driver.ts';
import { dropUnreferencedContents } from '../../operations/retention.ts';
import { PASSING } from './layout.ts';

/** As `Connection.dropTables`. */
export interface LogBounds {
  logsBeforeMs: Millis;
  nowMs: Millis;
  rowsMax: number;
}

const DAY_MS = 86_400_000;
/** For clocks that are late; and for as long as nothing may keep a worker from making more. */
const DAYS = { behind: 1, ahead: 3 };
/** More tables than these would slow everyone down for the sake of what few keep. */
const DAYS_COPIED = 400;
/**
 * While a definition waits for a table everyone else waits behind it. A batch holds its tables for some milliseconds; what
 * holds one for longer, such as a dump, is not waited for but tried again after a rest.
 */
const LOCK_TIMEOUT_MS = 100;
/** The default partition is looked through when one is made beside it; usually it is empty. */
const STATEMENT_TIMEOUT_MS = 1_000;
const REST_MS = 5 * 60_000;

export class LogDays {
  readonly #driver: Driver;
  /** The day at which those ahead of it were seen to be there. */
  #madeOn = -Infinity;
  #restUntilMs = -Infinity;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  /**
   * Makes what is missing of the days around `nowMs`. Throws `StoreUnavailable` when that is not to be had now; then entries
   * go into the default partition, and so do those of a day of which there are some in it already.
   */
  async makeAhead(nowMs: Millis): Promise<void> {
    const today = dayOf(nowMs);
    if (today === this.#madeOn) return;
    if (await this.#make(today - DAYS.behind, today + DAYS.ahead, nowMs)) this.#madeOn = today;
  }

  /** Makes days for entries that are about to be copied from another store, as far as that is to be had. */
  async makeFor({ fromMs, toMs }: { fromMs: Millis; toMs: Millis }): Promise<void> {
    const last = dayOf(toMs);
    try {
      await this.#make(Math.max(dayOf(fromMs), last - DAYS_COPIED), last, toMs);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    }
  }

  /** Makes days ahead and drops a piece of those that are past their time; answers whether more may be left. */
  async drop({ logsBeforeMs, nowMs, rowsMax }: LogBounds): Promise<boolean> {
    if (nowMs >= this.#restUntilMs) await this.makeAhead(nowMs);
    const { days, isExpiring } = await this.#driver.read(readLayout);
    if (isExpiring && (await this.dropContents(rowsMax))) return true;
    if (nowMs < this.#restUntilMs) return false;
    if (isExpiring) return this.dropExpired(nowMs);
    const expired = days.find((day) => (day + 1) * DAY_MS <= logsBeforeMs);
    return expired !== undefined && this.detach(expired, nowMs);
  }

  /** Takes a day out of everyone's sight, as the one that is being dropped. False: another worker is at it. */
  detach(day: number, nowMs: Millis): Promise<boolean> {
    return this.#define(nowMs, async (tx) => {
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
   * Drops what the next entries of the detached day were the last to refer to. False: it is walked through, or another
   * worker is at it.
   */
  dropContents(rowsMax: number): Promise<boolean> {
    return this.#driver.transaction(async (tx) => {
      const place = await takeOver(tx);
      if (!place || !(await readLayout(tx)).isExpiring) return false;
      const rows = await tx.query<Place & { message_key: number }>(
        `select project_id, at_ms, seq, message_key from expired_logs
         where (project_id, at_ms, seq) > (?, ?, ?) order by project_id, at_ms, seq limit ?`,
        [place.project_id, place.at_ms, place.seq, rowsMax],
      );
      const last = rows.at(-1);
      if (!last) return false;
      await dropUnreferencedContents(tx, [...new Set(rows.map(({ message_key }) => message_key))]);
      const { project_id, at_ms, seq } = last;
      await tx.run('update log_expiry set project_id = ?, at_ms = ?, seq = ?', [project_id, at_ms, seq]);
      return true;
    });
  }

  /** Drops the detached day if it is walked through. False: another worker is at it. */
  dropExpired(nowMs: Millis): Promise<boolean> {
    return this.#define(nowMs, async (tx, place) => {
      if (!(await readLayout(tx)).isExpiring) return;
      const rest = await tx.query('select 1 from expired_logs where (project_id, at_ms, seq) > (?, ?, ?) limit 1', [
        place.project_id,
        place.at_ms,
        place.seq,
      ]);
      if (rest.length === 0) await tx.run('drop table expired_logs');
    });
  }

  /** Whether all these days are there; not if another worker is at it. */
  async #make(first: number, last: number, nowMs: Millis): Promise<boolean> {
    const { days } = await this.#driver.read(readLayout);
    for (let day = first; day <= last; day++) {
      if (!days.includes(day) && !(await this.#define(nowMs, (tx) => makeDay(tx, day)))) return false;
    }
    return true;
  }

  /** Whether it was done: not if another worker is at it. Throws `StoreUnavailable`, and rests, when it cannot be now. */
  async #define(nowMs: Millis, work: (tx: Transaction, place: Place) => Promise<void>): Promise<boolean> {
    try {
      return await this.#driver.transaction(async (tx) => {
        await tx.query("select set_config('lock_timeout', ?, true), set_config('statement_timeout', ?, true)", [
          String(LOCK_TIMEOUT_MS),
          String(STATEMENT_TIMEOUT_MS),
        ]);
        const place = await takeOver(tx);
        if (place) await work(tx, place);
        return place !== undefined;
      });
    } catch (error) {
      if (error instanceof StoreFatal) throw error;
      this.#restUntilMs = nowMs + REST_MS;
      const reason = error instanceof Error ? error.message : String(error);
      throw new StoreUnavailable(`the days of the logs could not be changed: ${reason}`, { cause: error });
    }
  }
}

/** How far the detached day has been walked through. */
interface Place {
  project_id: number;
  at_ms: number;
  seq: number;
}

/** Keeps all other workers from the partitions until the transaction ends; undefined: one of them is at it. */
async function takeOver(tx: Transaction): Promise<Place | undefined> {
  const [place] = await tx.query<Place>('select project_id, at_ms, seq from log_expiry for update skip locked');
  return place;
}

interface Layout {
  /** Days that have a partition, oldest first. */
  days: number[];
  /** Whether there is a day that is detached and not yet dropped. */
  isExpiring: boolean;
}

async function readLayout(queries: Queries): Promise<Layout> {
  const rows = await queries.query<{ name: string }>(
    `select c.relname as name from pg_class c lookup pg_namespace n on (n.oid = c.relnamespace)
     where n.nspname = current_schema() and c.relkind = 'r'
       and (c.relispartition and c.relname ~ '^logs_[0-9]+$' or c.relname = 'expired_logs')`,
  );
  const names = rows.map(({ name }) => name);
  const days = names.filter((name) => name !== 'expired_logs').map(dayNamed);
  return { days: days.toSorted((a, b) => a - b), isExpiring: names.includes('expired_logs') };
}

/** Whether a day is on its way out, so that there may be contents to which nothing refers any more. */
export async function isExpiring(queries: Queries): Promise<boolean> {
  return (await readLayout(queries)).isExpiring;
}

/** Both tables or none: what is in the default partition of one is in that of the other. */
async function makeDay(tx: Transaction, day: number): Promise<void> {
  const [from, to] = [day * DAY_MS, (day + 1) * DAY_MS];
  const strays = await tx.query('select 1 from logs_default where at_ms >= ? and at_ms < ? limit 1', [from, to]);
  if (strays.length > 0) return;
  await lockLogs(tx);
  for (const table of ['logs', 'log_details'] as const) {
    await tx.run(
      `create table if not exists ${tableOf(table, day)} partition of ${table} for values from (${from}) to (${to})${PASSING}`,
    );
  }
}

/** In the order in which everyone else comes to them. */
async function lockLogs(tx: Transaction): Promise<void> {
  await tx.run('lock table only logs, only log_details in access exclusive mode');
}

function dayOf(timeMs: Millis): number {
  return Math.floor(timeMs / DAY_MS);
}

/** `logs_20270115`, which people can read. */
function tableOf(table: 'logs' | 'log_details', day: number): string {
  return `${table}_${new Date(day * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '')}`;
}

function dayNamed(name: string): number {
  const [, year, month, date] = /_(\d+)(\d\d)(\d\d)$/.exec(name) ?? [];
  return Date.UTC(Number(year), Number(month) - 1, Number(date)) / DAY_MS;
}
