/** Writes log events as rows whose numbers follow the order of their transactions. */
import type { StoreLimits } from '../../../engine/stores.ts';
import type { Driver, SqlDialect, SqlValue, Transaction } from '../../driver.ts';
import type { DueTimes } from '../due-times.ts';
import type { LockedProjects } from '../locking/locked-projects.ts';
import type { PlacementCheck } from '../locking/placement.ts';
import { DETAIL_COLUMNS, type StoredEvent } from '../messages/rows.ts';

const LOG_COLUMNS = ['project_id', 'at_ms', 'seq', 'message_key', 'state', 'run_key', 'response_status'] as const;

/** Numbers taken from the store at once, with one write. A crash loses the unused numbers. */
const BLOCK = 100_000;

export interface MessageEvents {
  projectId: number;
  key: number;
  /** The run of the message or of the events; null if there is none. */
  runKey: number | null;
  events: readonly StoredEvent[];
  /** The time of the message's latest event. Later events get no earlier time, even if the clock is set back. */
  floorMs: number;
}

/** A transaction has more events than its writer has numbers. The caller reserves numbers and repeats the transaction. */
export class TooFewNumbers extends Error {
  readonly needed: number;

  constructor(needed: number) {
    super(`${needed} numbers are needed at once`);
    this.name = 'TooFewNumbers';
    this.needed = needed;
  }
}

/** Appends events, each with a number larger than all earlier numbers of this writer. */
export class LogWriter {
  readonly #manyWriters: boolean;
  #next = 0;
  #end = 0;

  /** With `manyWriters`, numbers are reserved before the transaction, or other reservations would wait for its end. */
  constructor({ manyWriters }: { manyWriters: boolean }) {
    this.#manyWriters = manyWriters;
  }

  /** Reserves numbers for at least `count` events in a separate transaction. The numbers may be used after its commit. */
  async reserve(driver: Driver, count: number): Promise<void> {
    const size = Math.max(BLOCK, count);
    this.#add(await driver.transaction((tx) => tx.reserve('log entries', size)), size);
  }

  /** With many writers, throws {@link TooFewNumbers} when the reserved numbers run out. */
  async append(tx: Transaction, entries: readonly MessageEvents[]): Promise<void> {
    const count = entries.reduce((sum, entry) => sum + entry.events.length, 0);
    if (count === 0) return;
    let seq = await this.#take(tx, count);
    const logs: SqlValue[][] = [];
    const details: SqlValue[][] = [];
    for (const { projectId, key, runKey, events, floorMs } of entries) {
      let atMs = floorMs;
      for (const [eventAtMs, state, detail, responseStatus = null] of events) {
        atMs = Math.max(atMs, eventAtMs);
        logs.push([projectId, atMs, seq, key, state, runKey, responseStatus]);
        if (detail) details.push([seq, atMs, ...detail]);
        seq += 1;
      }
    }
    await tx.insertMany('logs', LOG_COLUMNS, logs);
    if (details.length > 0) await tx.insertMany('log_details', ['seq', 'at_ms', ...DETAIL_COLUMNS], details);
  }

  /** Whether the next event gets a larger number than `seq`. */
  comesAfter(seq: number): boolean {
    // A new block starts after all earlier numbers.
    return this.#next === this.#end || this.#next > seq;
  }

  /** Call this after a rollback, which may have undone the reservation of the current numbers. */
  forget(): void {
    if (this.#manyWriters) return;
    this.#next = 0;
    this.#end = 0;
  }

  async #take(tx: Transaction, count: number): Promise<number> {
    if (this.#end - this.#next < count) {
      if (this.#manyWriters) throw new TooFewNumbers(count);
      const size = Math.max(BLOCK, count);
      this.#add(await tx.reserve('log entries', size), size);
    }
    const first = this.#next;
    this.#next += count;
    return first;
  }

  #add(first: number, size: number): void {
    if (first < this.#end) return; // another batch has reserved later numbers since
    this.#next = first;
    this.#end = first + size;
  }
}

/**
 * For each message that has events: the earliest time of a next event that sorts after all of the message's events.
 * Within one millisecond the numbers decide the order, and the numbers of another worker may be larger. With `sinceMs`,
 * only events from `sinceMs` on are read, so the logs of earlier days are skipped.
 */
export async function lastEventTimes(
  { tx, logs }: Pick<WriteContext, 'tx' | 'logs'>,
  keys: readonly number[],
  sinceMs = 0,
): Promise<Map<number, number>> {
  const rows = await tx.query<{ message_key: number; at_ms: number; seq: number }>(
    `select message_key, max(at_ms) as at_ms, max(seq) as seq from logs
     where message_key in (??) and at_ms >= ? group by message_key`,
    [keys, sinceMs],
  );
  return new Map(rows.map(({ message_key, at_ms, seq }) => [message_key, logs.comesAfter(seq) ? at_ms : at_ms + 1]));
}

/** The transaction of a batch, and the state that its commands share. */
export interface WriteContext {
  tx: Transaction;
  limits: StoreLimits;
  logs: LogWriter;
  /** The first number reserved for each `reserveNumbers` command, by its arguments; empty if none was reserved. */
  reserved: ReadonlyMap<object, number>;
  /** Notifications of workers that follow from the transaction. */
  due: DueTimes;
  /** The projects whose lanes and runs the transaction may touch. */
  locked: LockedProjects;
  unpartitionedLogs: SqlDialect['unpartitionedLogs'];
  /** Requires that the projects of chosen rows stay in this cell, and names the moving projects, which are skipped. */
  placement: PlacementCheck;
}
