/**
 * The queue in front of the writer. Commands of one turn of the event loop are committed together; commands that come
 * while a transaction commits form the next one. So an idle store adds no delay, a busy one shares its fsyncs, and no
 * command waits for a timer.
 */
import type { ClaimToken, Millis } from '../../engine/model.ts';
import {
  AccountsChanged,
  CommitUnknown,
  HUNG_MS,
  ProjectAway,
  StoreFull,
  StoreUnavailable,
} from '../../engine/store-errors.ts';
import { classOf, type WriteCommand, type WriteMethod, type Writes } from '../operations/all.ts';
import { NOBODY, type Suspects } from '../operations/locks.ts';
import { Aside } from './aside.ts';
import type { BatchOutcome, WriteResult } from './batch.ts';
import { BatchLine } from './batch-line.ts';

/** Callers that go on in one turn of the event loop, but for those with new messages. */
const HEARD_MAX = 16;

export interface GroupCommitOptions {
  /** Commits a batch; one result per command. Rejects only when the store must not be used any more. */
  flush: (commands: readonly WriteCommand[], suspects: Suspects) => Promise<BatchOutcome>;
  /** Called once, when `flush` rejects. All commands that wait or come later are refused. */
  onFatal: (error: Error) => void;
  /**
   * Resolves when the event loop has delivered the input it has. Without it, the first of 64 requests that arrive
   * together is committed alone, and the other 63 wait for that commit. Default: the end of the microtasks.
   */
  endOfTurn?: () => Promise<void>;
  /** Cost of one batch; see `BatchLine`. Default: `BATCH_COST_MAX`. */
  costMax?: number;
  /**
   * A batch that has taken longer than this lets one other begin beside it, where the database can commit two at once: it may
   * hang. Sooner, the two would only be smaller, and cost more. `pause` takes a little longer. Needs `elapsedMs`. Default:
   * no other begins.
   */
  late?: { ms: Millis; pause: () => Promise<void> };
  /**
   * Time since a fixed moment. With it, commands that wait behind a batch that fails after a long time are refused
   * together with it. The next batch would fail as slowly, and their callers would wait twice for the same database.
   */
  elapsedMs?: () => Millis;
  /** Told of how many commands a batch is that begins; the function that it returns is called at its end. */
  watch?: ((commands: number) => () => void) | undefined;
  /** For commands that are blocked by another worker; absent where there is none. */
  aside?: {
    /** The pause between two looks whether they are still blocked. */
    pause: () => Promise<void>;
    looksMax: number;
  };
}

interface Waiting {
  command: WriteCommand;
  resolve: (answer: never) => void;
  reject: (error: Error) => void;
}

export class GroupCommit {
  readonly #flush: GroupCommitOptions['flush'];
  readonly #onFatal: GroupCommitOptions['onFatal'];
  readonly #endOfTurn: () => Promise<void>;
  readonly #late: NonNullable<GroupCommitOptions['late']>;
  #isLookingForLate = false;
  #isLookingAside = false;
  readonly #elapsedMs: () => Millis;
  readonly #watch: GroupCommitOptions['watch'];
  #onDue: (dueAtMs: number) => void = () => {};
  #onCommitUnknown: () => void = () => {};
  #onCancelled: (claimTokens: ClaimToken[]) => void = () => {};
  readonly #waiting: BatchLine<Waiting>;
  /** The batches under way. */
  readonly #flushing = new Set<{ begunAtMs: Millis }>();
  /** Why new commands are refused. */
  #refusal: string | undefined;
  #failed = false;
  #idle: (() => void) | undefined;
  readonly #aside: Aside<Waiting>;
  readonly #pause: () => Promise<void>;
  /** Commands that are committed, and whose callers go on in one of the next turns. */
  #unheard = 0;
  #batches = 0;
  #commands = 0;

  constructor({
    flush,
    onFatal,
    endOfTurn,
    costMax,
    late = NEVER_LATE,
    elapsedMs = () => 0,
    watch,
    aside = NO_ASIDE,
  }: GroupCommitOptions) {
    this.#aside = new Aside(aside.looksMax);
    this.#pause = aside.pause;
    this.#flush = flush;
    this.#waiting = new BatchLine(costMax);
    this.#late = late;
    this.#elapsedMs = elapsedMs;
    this.#watch = watch;
    this.#onFatal = onFatal;
    this.#endOfTurn = endOfTurn ?? (() => Promise.resolve());
  }

  /** Batches committed, commands in them, commands that wait. */
  get counts(): { batches: number; commands: number; waiting: number } {
    const waiting = this.#waiting.length + this.#aside.waiting;
    return { batches: this.#batches, commands: this.#commands, waiting };
  }

  /** From now on `listener` is told from when on something is due that a batch released and no command asked for. */
  listen(listener: (dueAtMs: number) => void): void {
    this.#onDue = listener;
  }

  /** From now on `listener` is told of claims whose messages a batch has cancelled. */
  listenForCancelled(listener: (claimTokens: ClaimToken[]) => void): void {
    this.#onCancelled = listener;
  }

  /** From now on `listener` is told when a batch was refused because the answer to its commit was lost. */
  listenForCommitUnknown(listener: () => void): void {
    this.#onCommitUnknown = listener;
  }

  /**
   * Resolves after the commit. Rejects with `StoreUnavailable` when nothing was saved and trying again may help.
   * Rejects with its subclass `CommitUnknown` when the commit may have succeeded.
   */
  run<M extends WriteMethod>(method: M, args: Writes[M]['args']): Promise<Writes[M]['answer']> {
    if (this.#refusal !== undefined) return Promise.reject(new StoreUnavailable(this.#refusal));
    return new Promise((resolve, reject) => {
      const command = { method, args } as WriteCommand;
      this.#enqueue([{ command, resolve, reject }]);
    });
  }

  #enqueue(entries: readonly Waiting[]): void {
    for (const entry of entries) this.#waiting.push(entry);
    if (entries.length === 0) return;
    if (this.#mayBegin()) void this.#flushAll();
    else this.#awaitLate();
  }

  #awaitLate(): void {
    const waits = this.#waiting.length > 0 && this.#flushing.size === 1;
    if (waits && !this.#isLookingForLate) void this.#lookForLate();
  }

  /** What waits behind a batch that turns out to be late does not wait until something else comes. */
  async #lookForLate(): Promise<void> {
    this.#isLookingForLate = true;
    while (this.#waiting.length > 0 && this.#flushing.size === 1) {
      await this.#late.pause();
      if (this.#waiting.length > 0 && this.#mayBegin()) void this.#flushAll();
    }
    this.#isLookingForLate = false;
  }

  /** Whether a batch may begin, after `last` or as a new one. Otherwise what waits goes with the next batch of another. */
  #mayBegin(last?: { begunAtMs: Millis }): boolean {
    const [other, ...more] = [...this.#flushing].filter((batch) => batch !== last);
    return other === undefined || (more.length === 0 && this.#elapsedMs() - other.begunAtMs > this.#late.ms);
  }

  /** Refuses new commands; resolves when those that wait are done. */
  async close(): Promise<void> {
    this.#refusal ??= 'the store is closing';
    if (!this.#isIdle) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
    }
  }

  get #isIdle(): boolean {
    return this.#flushing.size === 0 && this.#aside.length === 0 && this.#unheard === 0;
  }

  /** The store must not be used any more: refuses everything that waits or comes later, and says so once. */
  fail(error: Error): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#refusal = 'the store has failed';
    const waiting = [...this.#waiting.takeAll(), ...this.#aside.takeAll()];
    for (const { reject } of waiting) reject(new StoreUnavailable(this.#refusal, { cause: error }));
    this.#onFatal(error);
  }

  /** Refuses the waiting commands too, if nothing of the batch before was saved. */
  #refuseWaiting(results: readonly WriteResult[]): void {
    const [first] = results;
    if (first?.kind !== 'unavailable' || results.some(({ kind }) => kind !== 'unavailable')) return;
    for (const waiting of this.#waiting.takeAll()) this.#finish(waiting, { ...first, isCommitUnknown: false });
  }

  async #flushAll(): Promise<void> {
    const current = { begunAtMs: this.#elapsedMs() };
    this.#flushing.add(current);
    await this.#endOfTurn();
    // No pause between batches: the writer gets the next batch while this thread handles the answers of the last one.
    for (let may = true; may && this.#waiting.length > 0; may = this.#mayBegin(current)) {
      const batch = this.#waiting.take();
      current.begunAtMs = this.#elapsedMs();
      const end = this.#watch?.(batch.length);
      try {
        const commands = batch.map(({ command }) => command);
        const outcome = await this.#flush(commands, this.#aside.length > 0 ? this.#aside : NOBODY);
        const { results, dueAtMs, cancelledClaims } = outcome;
        end?.();
        if (dueAtMs !== null) this.#onDue(dueAtMs);
        if (cancelledClaims.length > 0) this.#onCancelled(cancelledClaims);
        if (results.some((result) => result.kind === 'unavailable' && result.isCommitUnknown)) this.#onCommitUnknown();
        this.#batches += 1;
        this.#commands += batch.length;
        this.#hearAll(batch, results);
        if (this.#elapsedMs() - current.begunAtMs > HUNG_MS) this.#refuseWaiting(results);
      } catch (error) {
        const reason = error instanceof Error ? error : new Error(String(error));
        for (const { reject } of batch) reject(new StoreUnavailable('the store has failed', { cause: reason }));
        this.fail(reason);
      }
    }
    this.#flushing.delete(current);
    this.#awaitLate(); // the other one may have begun only now
    if (this.#isIdle) this.#idle?.();
  }

  /**
   * All go on at once, unless they are many. Then those with new messages go first, and of the others a few in each turn of the
   * event loop: else each new message would wait until all answers of endpoints that were saved with it are worked off.
   */
  #hearAll(batch: readonly Waiting[], results: readonly WriteResult[]): void {
    const later: [Waiting, WriteResult][] = [];
    for (const [index, waiting] of batch.entries()) {
      const result = results[index];
      const mayWait = batch.length > HEARD_MAX && result?.kind === 'answer' && classOf(waiting.command) !== 'accept';
      if (mayWait) later.push([waiting, result]);
      else this.#hear(waiting, result);
    }
    if (later.length > 0) void this.#hearInTurns(later);
  }

  async #hearInTurns(later: [Waiting, WriteResult][]): Promise<void> {
    this.#unheard += later.length;
    while (later.length > 0) {
      await this.#endOfTurn();
      const group = later.splice(0, HEARD_MAX);
      this.#unheard -= group.length;
      for (const [waiting, result] of group) this.#hear(waiting, result);
    }
    if (this.#isIdle) this.#idle?.();
  }

  #hear(waiting: Waiting, result: WriteResult | undefined): void {
    if (result?.kind === 'blocked') {
      this.#aside.add(waiting, result.projectId);
      if (!this.#isLookingAside) void this.#lookAside();
      return;
    }
    this.#finish(waiting, result);
  }

  /** Answers the caller. It may have been a scout: then the commands that waited behind it follow. */
  #finish(waiting: Waiting, result: WriteResult | undefined): void {
    this.#enqueue(this.#aside.noteThrough(waiting));
    settleCaller(waiting, result);
  }

  /** One at a time: those aside may all get through and others come while it pauses. */
  async #lookAside(): Promise<void> {
    this.#isLookingAside = true;
    do {
      await this.#pause();
      const { scouts, givenUp } = this.#aside.look();
      for (const { reject } of givenUp) reject(new StoreUnavailable('another worker has the project locked'));
      this.#enqueue(scouts);
    } while (this.#aside.length > 0);
    this.#isLookingAside = false;
    if (this.#isIdle) this.#idle?.();
  }
}

const NEVER_LATE: NonNullable<GroupCommitOptions['late']> = { ms: Infinity, pause: () => new Promise(() => {}) };

const NO_ASIDE: NonNullable<GroupCommitOptions['aside']> = { pause: () => Promise.resolve(), looksMax: 0 };

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
