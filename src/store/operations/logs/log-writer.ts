/** How do log events become rows whose order is the order of their transactions? */
import type { StoreLimits } from '../../../engine/stores.ts';
import type { Driver, SqlDialect, SqlValue, Transaction } from '../../driver.ts';
import type { DueTimes } from '../due-times.ts';
import type { LockedProjects } from '../locking/locked-projects.ts';
import type { PlacementCheck } from '../locking/placement.ts';
import { DETAIL_COLUMNS, type StoredEvent } from '../messages/rows.ts';

const LOG_COLUMNS = ['project_id', 'at_ms', 'seq', 'message_key', 'state', 'run_key', 'response_status'] as const;

/** How many numbers are taken from the store at once; this writes one row. A crash loses the unused ones. */
const BLOCK = 100_000;

export interface MessageEvents {
  projectId: number;
  key: number;
  /** The run that the message belongs to, or that the events are of; null: none. */
  runKey: number | null;
  events: readonly StoredEvent[];
  /** Time of the message's latest event so far: the times of its events never decrease, even if a clock does. */
  floorMs: number;
}

/** A transaction has more events than its writer has numbers. More are reserved outside it, and it runs again. */
export class TooFewNumbers extends Error {
  readonly needed: number;

  constructor(needed: number) {
    super(`${needed} numbers are needed at once`);
    this.name = 'TooFewNumbers';
    this.needed = needed;
  }
}

/** Appends events, each under a number that is larger than all given before it by this writer. */
export class LogWriter {
  readonly #manyWriters: boolean;
  #next = 0;
  #end = 0;

  /** `manyWriters`: numbers are not taken inside a transaction, because all others would wait for its end. */
  constructor({ manyWriters }: { manyWriters: boolean }) {
    this.#manyWriters = manyWriters;
  }

  /** Takes numbers for at least `count` events in a transaction of its own. They can be used once it is committed. */
  async reserve(driver: Driver, count: number): Promise<void> {
    const size = Math.max(BLOCK, count);
    this.#add(await driver.transaction((tx) => tx.reserve('log entries', size)), size);
  }

  /** Throws {@link TooFewNumbers} where there are many writers. */
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

  /** Whether the next event is numbered after the one that has `seq`. */
  comesAfter(seq: number): boolean {
    // A new block begins after all numbers that were given before.
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
    if (first < this.#end) return; // another batch has reserved later numbers meanwhile
    this.#next = first;
    this.#end = first + size;
  }
}

/**
 * For each message that has events: the earliest time at which its next event comes after them. Within one millisecond
 * the numbers decide, and those of another worker may be larger. A caller that knows that no event before `sinceMs`
 * matters need not read the logs of earlier days.
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

/** What a command needs to write: its transaction, and what all commands of the transaction add to. */
export interface WriteContext {
  tx: Transaction;
  limits: StoreLimits;
  logs: LogWriter;
  /** The first number for each command that asked for numbers, by its arguments; only if taken outside. */
  reserved: ReadonlyMap<object, number>;
  /** What the transaction makes due, apart from what its commands asked for. */
  due: DueTimes;
  /** The projects whose lanes and runs it may touch. */
  locked: LockedProjects;
  looseLogs: SqlDialect['looseLogs'];
  /** What is chosen is held by it, and what it says is moving is left alone. */
  fence: PlacementCheck;
}
