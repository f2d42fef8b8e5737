/** How do log events become rows whose order is the order of their transactions? */
import type { SqlValue, Transaction } from '../driver.ts';
import type { DueTimes } from './due-times.ts';
import { reserve } from './numbers.ts';
import { DETAIL_COLUMNS, type StoredEvent } from './rows.ts';

/** Numbers taken from the store at once: one row written per so many events. What a crash leaves unused is lost. */
const BLOCK = 100_000;

export interface MessageEvents {
  projectId: number;
  key: number;
  /** The run that the message belongs to, or that the events are of; null: none. */
  runKey: number | null;
  events: readonly StoredEvent[];
  /** Time of the message's latest event so far; times never decrease (messaging.md 6.3), whatever clocks do. */
  floorMs: number;
}

/** Appends events, each under a number that is larger than all given before it by this writer. */
export class LogWriter {
  #next = 0;
  #end = 0;

  async append(tx: Transaction, entries: readonly MessageEvents[]): Promise<void> {
    const count = entries.reduce((sum, entry) => sum + entry.events.length, 0);
    if (count === 0) return;
    let seq = await this.#take(tx, count);
    const logs: SqlValue[][] = [];
    const details: SqlValue[][] = [];
    for (const { projectId, key, runKey, events, floorMs } of entries) {
      let atMs = floorMs;
      for (const [eventAtMs, state, detail] of events) {
        atMs = Math.max(atMs, eventAtMs);
        logs.push([projectId, atMs, seq, key, state, runKey]);
        if (detail) details.push([seq, ...detail]);
        seq += 1;
      }
    }
    await tx.insertMany('logs', ['project_id', 'at_ms', 'seq', 'message_key', 'state', 'run_key'], logs);
    if (details.length > 0) await tx.insertMany('log_details', ['seq', ...DETAIL_COLUMNS], details);
  }

  /** To be called after a rollback, which may have undone the reservation of the numbers at hand. */
  forget(): void {
    this.#next = 0;
    this.#end = 0;
  }

  async #take(tx: Transaction, count: number): Promise<number> {
    if (this.#end - this.#next < count) {
      const size = Math.max(BLOCK, count);
      this.#next = await reserve(tx, 'log entries', size);
      this.#end = this.#next + size;
    }
    const first = this.#next;
    this.#next += count;
    return first;
  }
}

/** Time of the latest log entry of each message that has one. */
export async function lastEventTimes(tx: Transaction, keys: readonly number[]): Promise<Map<number, number>> {
  const rows = await tx.query<{ message_key: number; at_ms: number }>(
    'select message_key, max(at_ms) as at_ms from logs where message_key in (??) group by message_key',
    [keys],
  );
  return new Map(rows.map((row) => [row.message_key, row.at_ms]));
}

/** What a command needs to write: the transaction it is part of, and what collects for all of its commands. */
export interface WriteContext {
  tx: Transaction;
  logs: LogWriter;
  /** What the transaction makes due besides what its commands asked for. */
  due: DueTimes;
}
