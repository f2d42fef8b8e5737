/**
 * Group commit: commands that wait at the same time are saved in one transaction, and share its fsync.
 *
 * A writer takes batch after batch from the line (batch-queue.ts) until the line is empty, and a command that finds no writer
 * starts one. So an idle store adds no delay, a busy one commits large batches, and no command waits for a timer.
 *
 * Two cases exist only where a database has several writers. A batch that is late may hang: a second writer then starts
 * beside it. Commands whose project another worker has locked wait aside (blocked-commands.ts).
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
import { NOBODY, type Suspects } from '../operations/locking/locks.ts';
import type { BatchOutcome, WriteResult } from './batch.ts';
import { BatchQueue } from './batch-queue.ts';
import { BlockedCommands } from './blocked-commands.ts';

/** Callers of a large batch that continue in one turn of the event loop, except those with new messages. */
const CALLERS_TOGETHER_MAX = 16;

/** How commands become batches. */
export interface Batching {
  /**
   * Resolves when the event loop has delivered the input it has. Without it, the first of 64 requests that arrive
   * together is committed alone, and the other 63 wait for that commit. Default: the end of the microtasks.
   */
  endOfTurn: () => Promise<void>;
  /** Cost of one batch; see `BatchLine`. Default: `BATCH_COST_MAX`. */
  costMax?: number;
  /**
   * A batch that has taken longer than this lets a second writer start, where the database can commit two at once. Sooner, the
   * two batches would only be smaller, and cost more. `pause` takes a little longer. Needs `elapsedMs`. Default: never.
   */
  late: { ms: Millis; pause: () => Promise<void> };
  /**
   * Time since a fixed moment. With it, commands that wait behind a batch that fails after a long time are refused
   * together with it. The next batch would fail as slowly, and their callers would wait twice for the same database.
   */
  elapsedMs: () => Millis;
  /** Called with the size of each batch that starts; the function that it returns is called when the batch ends. */
  watch?: ((commands: number) => () => void) | undefined;
  /** For commands that another worker blocks: the pause between two attempts, and how often they are tried. Default: none. */
  aside: { pause: () => Promise<void>; looksMax: number };
}

const DEFAULTS: Batching = {
  endOfTurn: () => Promise.resolve(),
  late: { ms: Infinity, pause: () => new Promise(() => {}) },
  elapsedMs: () => 0,
  aside: { pause: () => Promise.resolve(), looksMax: 0 },
};

/** Commits a batch; one result per command. Rejects only when the store must not be used any more. */
export type Flush = (commands: readonly WriteCommand[], suspects: Suspects) => Promise<BatchOutcome>;

interface Waiting {
  command: WriteCommand;
  resolve: (answer: never) => void;
  reject: (error: Error) => void;
}

/** Commits one batch after another. */
interface Writer {
  /** When its current batch started. */
  sinceMs: Millis;
}

export class GroupCommit {
  readonly #flush: Flush;
  readonly #batching: Batching;
  readonly #events: StoreEvents;
  readonly #onFatal: (error: Error) => void;
  readonly #line: BatchQueue<Waiting>;
  readonly #aside: BlockedCommands<Waiting>;
  readonly #writers = new Set<Writer>();
  readonly #counts = { batches: 0, commands: 0 };
  #isAwaitingLate = false;
  #isLookingAside = false;
  /** Callers without an answer. */
  #unanswered = 0;
  #whenAnswered: (() => void) | undefined;
  /** Why new commands are refused. */
  #refusal: 'the store is closing' | 'the store has failed' | undefined;

  /** `onFatal` is called once, when `flush` rejects. All commands that wait or come later are refused. */
  constructor(flush: Flush, events: StoreEvents, onFatal: (error: Error) => void, batching: Partial<Batching> = {}) {
    this.#flush = flush;
    this.#events = events;
    this.#onFatal = onFatal;
    this.#batching = { ...DEFAULTS, ...batching };
    this.#line = new BatchQueue(batching.costMax);
    this.#aside = new BlockedCommands(this.#batching.aside.looksMax);
  }

  /** Batches committed, commands in them, commands that wait. */
  get counts(): { batches: number; commands: number; waiting: number } {
    return { ...this.#counts, waiting: this.#line.length + this.#aside.waiting };
  }

  /**
   * Resolves after the commit. Rejects with `StoreUnavailable` when nothing was saved and trying again may help.
   * Rejects with its subclass `CommitUnknown` when the commit may have succeeded.
   */
  run<M extends WriteMethod>(method: M, args: Writes[M]['args']): Promise<Writes[M]['answer']> {
    if (this.#refusal !== undefined) return Promise.reject(new StoreUnavailable(this.#refusal));
    this.#unanswered += 1;
    return new Promise((resolve, reject) => {
      this.#enqueue([{ command: { method, args } as WriteCommand, resolve, reject }]);
    });
  }

  /** Refuses new commands; resolves when those that wait are answered. */
  async close(): Promise<void> {
    this.#refusal ??= 'the store is closing';
    if (this.#unanswered === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenAnswered = resolve;
    });
  }

  /** The store must not be used any more: refuses everything that waits or comes later. */
  fail(error: Error): void {
    if (this.#refusal === 'the store has failed') return;
    this.#refusal = 'the store has failed';
    this.#refuse([...this.#line.takeAll(), ...this.#aside.takeAll()], this.#refusal, error);
    this.#onFatal(error);
  }

  #enqueue(entries: readonly Waiting[]): void {
    for (const entry of entries) this.#line.push(entry);
    this.#startWriter();
  }

  /** For what waits: at once if it may, otherwise when the batch under way turns out to be late. */
  #startWriter(): void {
    if (this.#line.length === 0) return;
    if (this.#mayWrite()) void this.#write({ sinceMs: this.#batching.elapsedMs() });
    else if (!this.#isAwaitingLate) void this.#awaitLate();
  }

  async #awaitLate(): Promise<void> {
    this.#isAwaitingLate = true;
    await this.#batching.late.pause();
    this.#isAwaitingLate = false;
    this.#startWriter();
  }

  /** Whether there is no other writer than `writer`, or one whose batch is late. */
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
    // No pause between batches: the database gets the next one while this thread handles the answers to the last one.
    for (let may = true; may && this.#line.length > 0; may = this.#mayWrite(writer)) {
      writer.sinceMs = this.#batching.elapsedMs();
      await this.#commit(this.#line.take(), writer);
    }
    this.#writers.delete(writer);
    this.#startWriter();
  }

  async #commit(batch: readonly Waiting[], { sinceMs }: Writer): Promise<void> {
    const end = this.#batching.watch?.(batch.length);
    const commands = batch.map(({ command }) => command);
    try {
      const outcome = await this.#flush(commands, this.#aside.length > 0 ? this.#aside : NOBODY);
      end?.();
      this.#counts.batches += 1;
      this.#counts.commands += batch.length;
      this.#events.tell(outcome);
      void this.#answerAll(batch, outcome.results);
      if (this.#batching.elapsedMs() - sinceMs > HUNG_MS) this.#refuseWaiting(outcome.results);
    } catch (error) {
      const cause = error instanceof Error ? error : new Error(String(error));
      this.#refuse(batch, 'the store has failed', cause);
      this.fail(cause);
    }
  }

  /** Refuses the waiting commands too, if nothing of the batch before was saved. */
  #refuseWaiting(results: readonly WriteResult[]): void {
    const [first] = results;
    if (first?.kind !== 'unavailable' || results.some(({ kind }) => kind !== 'unavailable')) return;
    for (const waiting of this.#line.takeAll()) this.#answer(waiting, { ...first, isCommitUnknown: false });
  }

  /**
   * Callers of a small batch continue at once. In a large one those with new messages do, and the others continue a few in each
   * turn of the event loop. Otherwise each new message would wait until all settled attempts of its batch are handled.
   */
  async #answerAll(batch: readonly Waiting[], results: readonly WriteResult[]): Promise<void> {
    const later: [Waiting, WriteResult][] = [];
    for (const [index, waiting] of batch.entries()) {
      const result = results[index];
      const mayWait = result?.kind === 'answer' && classOf(waiting.command) !== 'accept';
      if (mayWait && batch.length > CALLERS_TOGETHER_MAX) later.push([waiting, result]);
      else this.#answer(waiting, result);
    }
    for (const [index, [waiting, result]] of later.entries()) {
      if (index % CALLERS_TOGETHER_MAX === 0) await this.#batching.endOfTurn();
      this.#answer(waiting, result);
    }
  }

  /** A blocked command goes aside. The answer to a scout lets those behind it follow. */
  #answer(waiting: Waiting, result: WriteResult | undefined): void {
    if (result?.kind === 'blocked') {
      this.#aside.add(waiting, result.projectId);
      if (!this.#isLookingAside) void this.#lookAside();
      return;
    }
    this.#enqueue(this.#aside.noteThrough(waiting));
    settleCaller(waiting, result);
    this.#noteAnswered(1);
  }

  async #lookAside(): Promise<void> {
    this.#isLookingAside = true;
    do {
      await this.#batching.aside.pause();
      const { scouts, givenUp } = this.#aside.look();
      this.#refuse(givenUp, 'another worker has the project locked');
      this.#enqueue(scouts);
    } while (this.#aside.length > 0);
    this.#isLookingAside = false;
  }

  #refuse(entries: readonly Waiting[], reason: string, cause?: Error): void {
    for (const { reject } of entries) reject(new StoreUnavailable(reason, { cause }));
    this.#noteAnswered(entries.length);
  }

  #noteAnswered(count: number): void {
    this.#unanswered -= count;
    if (this.#unanswered === 0) this.#whenAnswered?.();
  }
}

function settleCaller({ resolve, reject }: Waiting, result: WriteResult | undefined): void {
  if (result === undefined) reject(new Error('the store gave no answer'));
  else if (result.kind === 'answer') resolve(result.answer as never);
  else if (result.kind === 'unavailable') {
    const Reason = result.isCommitUnknown ? CommitUnknown : result.isFull ? StoreFull : StoreUnavailable;
    reject(new Reason(result.reason, { detail: result.detail }));
  } else if (result.kind === 'away') reject(new ProjectAway(result.projectId, result.isGone));
  else if (result.kind === 'accountsChanged') reject(new AccountsChanged());
  else if (result.kind === 'rejected') {
    reject(new Error(`the store refused a command: ${result.reason}`));
  }
}
