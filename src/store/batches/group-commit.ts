/**
 * Group commit: saves commands that wait at the same time in one transaction, so that they share its fsync.
 *
 * A writer is a loop that takes batches from the queue (batch-queue.ts) until the queue is empty. A command starts a
 * writer if none is running. So an idle store adds no delay, a busy store commits large batches, and no command waits for
 * a timer.
 *
 * Two cases exist only where a database runs transactions concurrently. A late batch may hang, so a second writer starts.
 * Commands whose project another worker has locked wait in `BlockedCommands`.
 */
import type { Millis } from '../../engine/model.ts';
import {
  AccountsChanged,
  CommitUnknown,
  HUNG_MS,
  ProjectAway,
  StoreFull,
  StoreUnavailable,
} from '../../engine/store-errors.ts';
import type { StoreEvents } from '../connection.ts';
import { classOf, type WriteCommand, type WriteMethod, type Writes } from '../operations/all.ts';
import { NO_SUSPECTS, type Suspects } from '../operations/locking/locks.ts';
import type { BatchOutcome, WriteResult } from './batch.ts';
import { BatchQueue } from './batch-queue.ts';
import { BlockedCommands } from './blocked-commands.ts';

/** How many callers of a large batch continue in one round of the event loop. Those with new messages do not count. */
const CALLERS_PER_ROUND_MAX = 16;

/** How commands become batches. */
export interface Batching {
  /**
   * Resolves when the event loop has delivered its pending input. If batches did not wait for the input, the first of 64
   * requests that arrive together would be committed alone, and the other 63 would wait for that commit. Default: the
   * next microtask.
   */
  endOfTurn: () => Promise<void>;
  /** Cost of one batch; see `BatchQueue`. Default: `BATCH_COST_MAX`. */
  costMax?: number;
  /**
   * A second writer starts when a batch has taken this long, where the database can commit two batches at once. With a
   * shorter time, both writers' batches would only be smaller, and cost more. `pause` takes a little longer than `ms`.
   * Needs `elapsedMs`. Default: never.
   */
  late: { ms: Millis; pause: () => Promise<void> };
  /**
   * A monotonic clock. If set, a batch that fails after a long time also fails the queued commands: otherwise the next
   * batch would fail as slowly, and the callers of these commands would wait twice for the same database.
   */
  elapsedMs: () => Millis;
  /** Called with the size of each batch that starts. The function that it returns is called when the batch ends. */
  watch?: ((commands: number) => () => void) | undefined;
  /** The pause between two scouts of a locked project, and the maximum number of its scouts. Default: no scouts. */
  blocked: { pause: () => Promise<void>; scoutsMax: number };
}

const DEFAULTS: Batching = {
  endOfTurn: () => Promise.resolve(),
  late: { ms: Infinity, pause: () => new Promise(() => {}) },
  elapsedMs: () => 0,
  blocked: { pause: () => Promise.resolve(), scoutsMax: 0 },
};

/** Commits a batch and returns one result per command. Rejects only when the store must not be used any more. */
export type Flush = (commands: readonly WriteCommand[], suspects: Suspects) => Promise<BatchOutcome>;

interface PendingCommand {
  command: WriteCommand;
  resolve: (result: never) => void;
  reject: (error: Error) => void;
}

/** A loop that commits one batch after another. */
interface Writer {
  /** The start time of the current batch of the writer. */
  sinceMs: Millis;
}

export class GroupCommit {
  readonly #flush: Flush;
  readonly #batching: Batching;
  readonly #events: StoreEvents;
  readonly #onFatal: (error: Error) => void;
  readonly #queue: BatchQueue<PendingCommand>;
  readonly #blocked: BlockedCommands<PendingCommand>;
  readonly #writers = new Set<Writer>();
  readonly #counts = { batches: 0, commands: 0 };
  #isAwaitingLate = false;
  #isScouting = false;
  /** Number of callers that still wait for a result. */
  #unsettled = 0;
  #whenSettled: (() => void) | undefined;
  /** The reason for refusing new commands. Undefined while commands are accepted. */
  #refusal: 'the store is closing' | 'the store has failed' | undefined;

  /** `onFatal` is called once, when `flush` rejects. All waiting and later commands are then refused. */
  constructor(flush: Flush, events: StoreEvents, onFatal: (error: Error) => void, batching: Partial<Batching> = {}) {
    this.#flush = flush;
    this.#events = events;
    this.#onFatal = onFatal;
    this.#batching = { ...DEFAULTS, ...batching };
    this.#queue = new BatchQueue(batching.costMax);
    this.#blocked = new BlockedCommands(this.#batching.blocked.scoutsMax);
  }

  /** Committed batches, the commands in them, and the commands that wait. */
  get counts(): { batches: number; commands: number; waiting: number } {
    return { ...this.#counts, waiting: this.#queue.length + this.#blocked.waiting };
  }

  /**
   * Resolves after the commit. Rejects with `StoreUnavailable` when nothing was saved and trying again may help.
   * Rejects with its subclass `CommitUnknown` when the commit may have succeeded.
   */
  run<M extends WriteMethod>(method: M, args: Writes[M]['args']): Promise<Writes[M]['result']> {
    if (this.#refusal !== undefined) return Promise.reject(new StoreUnavailable(this.#refusal));
    this.#unsettled += 1;
    return new Promise((resolve, reject) => {
      this.#enqueue([{ command: { method, args } as WriteCommand, resolve, reject }]);
    });
  }

  /** Refuses new commands. Resolves when all earlier commands have their results. */
  async close(): Promise<void> {
    this.#refusal ??= 'the store is closing';
    if (this.#unsettled === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenSettled = resolve;
    });
  }

  /** Refuses all waiting and later commands, because the store must not be used any more. */
  fail(error: Error): void {
    if (this.#refusal === 'the store has failed') return;
    this.#refusal = 'the store has failed';
    this.#refuse([...this.#queue.takeAll(), ...this.#blocked.takeAll()], this.#refusal, error);
    this.#onFatal(error);
  }

  #enqueue(entries: readonly PendingCommand[]): void {
    for (const entry of entries) this.#queue.push(entry);
    this.#startWriter();
  }

  /** Starts a writer for the queue: now, or when the current batch is late. */
  #startWriter(): void {
    if (this.#queue.length === 0) return;
    if (this.#mayWrite()) void this.#write({ sinceMs: this.#batching.elapsedMs() });
    else if (!this.#isAwaitingLate) void this.#awaitLate();
  }

  async #awaitLate(): Promise<void> {
    this.#isAwaitingLate = true;
    await this.#batching.late.pause();
    this.#isAwaitingLate = false;
    this.#startWriter();
  }

  /** Whether `writer` (or a new writer) may commit: no other writer is active, or the only other writer is late. */
  #mayWrite(writer?: Writer): boolean {
    const [other, ...more] = [...this.#writers].filter((each) => each !== writer);
    return other === undefined || (more.length === 0 && this.#isLate(other));
  }

  #isLate({ sinceMs }: Writer): boolean {
    return this.#batching.elapsedMs() - sinceMs > this.#batching.late.ms;
  }

  async #write(writer: Writer): Promise<void> {
    this.#writers.add(writer);
    await this.#batching.endOfTurn();
    // There is no pause between batches: the database works on the next batch while this thread handles the last results.
    for (let may = true; may && this.#queue.length > 0; may = this.#mayWrite(writer)) {
      writer.sinceMs = this.#batching.elapsedMs();
      await this.#commit(this.#queue.take(), writer);
    }
    this.#writers.delete(writer);
    this.#startWriter();
  }

  async #commit(batch: readonly PendingCommand[], { sinceMs }: Writer): Promise<void> {
    const end = this.#batching.watch?.(batch.length);
    const commands = batch.map(({ command }) => command);
    try {
      const outcome = await this.#flush(commands, this.#blocked.length > 0 ? this.#blocked : NO_SUSPECTS);
      end?.();
      this.#counts.batches += 1;
      this.#counts.commands += batch.length;
      this.#events.report(outcome);
      void this.#settleAll(batch, outcome.results);
      if (this.#batching.elapsedMs() - sinceMs > HUNG_MS) this.#refuseWaiting(outcome.results);
    } catch (error) {
      const cause = error instanceof Error ? error : new Error(String(error));
      this.#refuse(batch, 'the store has failed', cause);
      this.fail(cause);
    }
  }

  /** Refuses the queued commands too, if the batch saved nothing. */
  #refuseWaiting(results: readonly WriteResult[]): void {
    const [first] = results;
    if (first?.kind !== 'unavailable' || results.some(({ kind }) => kind !== 'unavailable')) return;
    for (const pending of this.#queue.takeAll()) this.#settle(pending, { ...first, isCommitUnknown: false });
  }

  /**
   * Callers of a small batch continue at once. In a large batch, only callers with new messages continue at once; the
   * others continue a few per round of the event loop. Otherwise each new message would wait until all settled attempts
   * of its batch are handled.
   */
  async #settleAll(batch: readonly PendingCommand[], results: readonly WriteResult[]): Promise<void> {
    const later: [PendingCommand, WriteResult][] = [];
    for (const [index, pending] of batch.entries()) {
      const result = results[index];
      const mayWait = result?.kind === 'result' && classOf(pending.command) !== 'accept';
      if (mayWait && batch.length > CALLERS_PER_ROUND_MAX) later.push([pending, result]);
      else this.#settle(pending, result);
    }
    for (const [index, [pending, result]] of later.entries()) {
      if (index % CALLERS_PER_ROUND_MAX === 0) await this.#batching.endOfTurn();
      this.#settle(pending, result);
    }
  }

  /** Resolves the caller, or keeps a blocked command. If a scout was not blocked, requeues the other commands of its project. */
  #settle(pending: PendingCommand, result: WriteResult | undefined): void {
    if (result?.kind === 'blocked') {
      this.#blocked.add(pending, result.projectId);
      if (!this.#isScouting) void this.#sendScouts();
      return;
    }
    this.#enqueue(this.#blocked.recordUnblocked(pending));
    settleCaller(pending, result);
    this.#countSettled(1);
  }

  async #sendScouts(): Promise<void> {
    this.#isScouting = true;
    do {
      await this.#batching.blocked.pause();
      const { scouts, expired } = this.#blocked.takeScouts();
      this.#refuse(expired, 'another worker has the project locked');
      this.#enqueue(scouts);
    } while (this.#blocked.length > 0);
    this.#isScouting = false;
  }

  #refuse(entries: readonly PendingCommand[], reason: string, cause?: Error): void {
    for (const { reject } of entries) reject(new StoreUnavailable(reason, { cause }));
    this.#countSettled(entries.length);
  }

  #countSettled(count: number): void {
    this.#unsettled -= count;
    if (this.#unsettled === 0) this.#whenSettled?.();
  }
}

function settleCaller({ resolve, reject }: PendingCommand, result: WriteResult | undefined): void {
  if (result === undefined) reject(new Error('the store returned no result'));
  else if (result.kind === 'result') resolve(result.result as never);
  else if (result.kind === 'unavailable') {
    const Reason = result.isCommitUnknown ? CommitUnknown : result.isFull ? StoreFull : StoreUnavailable;
    reject(new Reason(result.reason, { detail: result.detail }));
  } else if (result.kind === 'away') reject(new ProjectAway(result.projectId, result.isGone));
  else if (result.kind === 'accountsChanged') reject(new AccountsChanged());
  else if (result.kind === 'rejected') {
    reject(new Error(`the store refused a command: ${result.reason}`));
  }
}
