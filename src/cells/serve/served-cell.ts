/**
 * One cell beside the first, as a worker serves it: opened when there is something to do, and closed to rest when it has been
 * quiet for a while. A worker that serves a cell looks at it while it rests, as often as it would send heartbeats there.
 * Any other worker leaves it alone until a request names one of its projects.
 */

import { messageOf, type WatchCell } from '../../admin/open-store.ts';
import { unseal } from '../../config/sealing.ts';
import type { Cell, Project } from '../../engine/accounts/store.ts';
import type { CellState, Engine } from '../../engine/commands.ts';
import type { Totals } from '../../engine/lists/unfinished.ts';
import { within } from '../../engine/loops/within.ts';
import type { Millis } from '../../engine/model.ts';
import type { Timer } from '../../engine/ports.ts';
import { publicReason, StoreUnavailable } from '../../engine/store-errors.ts';
import type { Store } from '../../store/store.ts';
import { Adoptions } from './adoptions.ts';
import type { CellsContext } from './context.ts';

export interface Opened {
  store: Store;
  engine: Engine;
}

/**
 *                  wake             database answers
 *   unseen, resting ---> opening -----------------> open
 *        ^                  | does not                | quiet, or its database is lost
 *        |    retry timer   v                         v
 *        +--------------- away <------ lost ------ closing ----> resting
 */
type State =
  /** Nobody here has opened it, or looked at it. */
  | { is: 'unseen' }
  | { is: 'resting'; sinceMs: Millis }
  | { is: 'opening'; done: Promise<void>; isFirst: boolean }
  | { is: 'open'; opened: Opened }
  | { is: 'closing'; done: Promise<void> }
  | { is: 'away'; retry: Timer };

const RETRY_MS = { first: 500, max: 10_000 };
/** The longest that a request waits for a cell that is being opened. */
const OPENED_IN_MS = 2_000;
/** How long after the last request a cell may rest. */
const QUIET_MS = 30_000;
/** A cell in which something is due sooner is not closed. */
const REST_MIN_MS = 60_000;
/** How long before something is due a resting cell is opened: longer than from one look to the next. */
const AHEAD_MS = 10_000;
/** The longest rest: retention runs only in an open cell. */
const REST_MAX_MS = 3_600_000;
const MINUTE_MS = 60_000;
const MINUTES_OF_OPENING = 30;
/** The time to drain a cell that goes to rest: for an attempt that begins at that moment. */
const ENDING_MS = 10_000;

export class ServedCell implements CellState {
  readonly #cell: Cell;
  readonly #context: CellsContext;
  /** Throws `StoreUnavailable`. */
  readonly #createEngine: (store: Store) => Promise<Engine>;
  readonly #adoptions = new Adoptions();
  /** Requests under way, and watchers of logs. */
  readonly #holders = new Set<{ onLost: () => void }>();
  #state: State = { is: 'unseen' };
  /** Why it could not be reached when that was last tried. Absent: it could, or that is not known. */
  #failure: { reason: string; retryMs: Millis } | undefined;
  #isServed = false;
  #isClosed = false;
  #usedAtMs: Millis = -Infinity;
  #watch: (ReturnType<WatchCell> & { isListening?: true }) | undefined;
  #polling: Promise<void> | undefined;

  constructor(cell: Cell, context: CellsContext, createEngine: (store: Store) => Promise<Engine>) {
    this.#cell = cell;
    this.#context = context;
    this.#createEngine = createEngine;
  }

  get name(): string {
    return this.#cell.name;
  }

  /** Undefined unless it is open. */
  get opened(): Opened | undefined {
    return this.#state.is === 'open' ? this.#state.opened : undefined;
  }

  /** Why its projects are refused, as `StoreUnavailable.reason`; undefined: they are not, as far as is known. */
  get awayBecause(): string | undefined {
    if (this.#failure) return this.#failure.reason;
    const { is } = this.#state;
    const isNew = is === 'unseen' || (is === 'opening' && this.#state.isFirst);
    return isNew && this.#isServed ? 'it is being opened' : undefined;
  }

  get isServed(): boolean {
    return this.#isServed;
  }

  /** Whether a look is not answered yet. */
  get isPolling(): boolean {
    return this.#polling !== undefined;
  }

  get state(): CellState['state'] {
    if (this.opened) return 'open';
    if (this.awayBecause !== undefined) return 'away';
    return 'done' in this.#state ? 'changing' : 'resting';
  }

  get inFlight(): number {
    return this.opened?.engine.inFlight ?? 0;
  }

  async readTotals(): Promise<Totals> {
    if (this.opened) return this.opened.engine.readTotals();
    try {
      const totals = await this.#watch?.readTotals();
      if (totals) return totals;
    } catch (error) {
      throw new StoreUnavailable(messageOf(error), { cause: error });
    }
    throw new StoreUnavailable(`the cell "${this.name}" is closed`);
  }

  /**
   * Says whether this worker serves it. To be called again and again: each time it is looked at, opened, or put to rest. `opens`: it
   * is opened as soon as this worker serves it, so that the first request need not wait. Otherwise only if there is something to do.
   */
  serve(isServed: boolean, { opens = false } = {}): void {
    const isNew = isServed && !this.#isServed;
    this.#isServed = isServed;
    if (this.#isClosed || 'done' in this.#state || this.#state.is === 'away') return;
    if (isNew && (opens || !this.#context.watchCell)) return this.#wake();
    this.#polling ??= this.#poll().finally(() => {
      this.#polling = undefined;
    });
  }

  /** For a request, which may come to a cell at rest. Throws `StoreUnavailable` when it is away. */
  async use<T>(work: (opened: Opened) => Promise<T>): Promise<T> {
    const release = this.keepOpen();
    try {
      return await work(this.opened ?? (await this.#openedSoon()));
    } finally {
      release();
    }
  }

  /** Keeps it open, once it is, until the returned function is called. `onLost`: called if its database is lost meanwhile. */
  keepOpen(onLost: () => void = () => {}): () => void {
    const holder = { onLost };
    this.#holders.add(holder);
    return () => {
      this.#holders.delete(holder);
      this.#usedAtMs = this.#nowMs;
    };
  }

  /** Opens it without a request: attempts of this worker may have moved there. */
  visit(): void {
    this.#usedAtMs = this.#nowMs;
    this.#wake();
  }

  /** These projects live here now. */
  adopt(projects: readonly Project[]): void {
    this.#adoptions.add(projects);
    void this.adopted();
  }

  /** Resolves when the cell knows the projects that live here, or cannot be told now. */
  async adopted(): Promise<void> {
    try {
      if (this.opened) await this.#adoptions.save(this.opened.store);
    } catch (error) {
      // Its projects are refused until the accounts are read again.
      if (!(error instanceof StoreUnavailable)) throw error;
    }
  }

  /** As `Engine.quiesce`. It is not opened again. */
  async quiesce(limitMs: Millis): Promise<void> {
    this.#isClosed = true;
    if (this.#state.is === 'away') this.#state.retry.cancel();
    if ('done' in this.#state) await this.#state.done;
    await this.#polling;
    await this.adopted();
    await this.opened?.engine.quiesce(limitMs);
  }

  /** Once it is quiescent. */
  async close(): Promise<void> {
    if ('done' in this.#state) await this.#state.done;
    if (this.opened) await close(this.opened, 0);
    await this.#endWatch();
  }

  get #nowMs(): Millis {
    return this.#context.first.clock.elapsedMs;
  }

  /** Throws `StoreUnavailable`. */
  async #openedSoon(): Promise<Opened> {
    this.#wake();
    // It may be closing, and is then opened after that.
    for (let waits = 0; waits < 2 && !this.opened && !this.#failure; waits += 1) {
      if ('done' in this.#state) await within(this.#context.first.clock, OPENED_IN_MS, this.#state.done);
      this.#wake();
    }
    if (this.opened) return this.opened;
    throw new StoreUnavailable(`the cell "${this.name}" cannot be reached`);
  }

  /** Opens it if it rests. */
  #wake(): void {
    const { is } = this.#state;
    if (this.#isClosed || (is !== 'unseen' && is !== 'resting')) return;
    this.#state = { is: 'opening', done: this.#open(), isFirst: is === 'unseen' };
  }

  async #open(): Promise<void> {
    const { openCell, first } = this.#context;
    const { cellId, name } = this.#cell;
    let store: Store | undefined;
    try {
      await this.#endWatch();
      store = await openCell(this.#url(), (error) => this.#lose(error), { mustExist: true });
      const found = await store.cells.readCellId();
      if (found !== cellId) throw new StoreUnavailable(`its database is ${found ?? 'not yet'} cell ${cellId}`);
      store.guardProjects();
      await this.#adoptions.save(store);
      this.#state = { is: 'open', opened: { store, engine: await this.#createEngine(store) } };
      this.#failure = undefined;
      this.#usedAtMs = this.#nowMs;
      first.log.info('cell_opened', { cell: name });
    } catch (error) {
      await store?.close();
      first.log.warn('cell_not_opened', { cell: name, reason: messageOf(error) });
      this.#noteFailure(error);
      this.#retryLater();
    }
  }

  /** Its database cannot be trusted any more. Other workers release what this worker had claimed there. */
  #lose(error: Error): void {
    const { log } = this.#context.first;
    log.error('cell_lost', { cell: this.name, reason: error.message });
    const { opened } = this;
    this.#noteFailure(error);
    for (const { onLost } of this.#holders) onLost();
    if (!opened) return;
    const closed = close(opened, 0)
      .catch((failure: unknown) => log.warn('cell_not_closed', { cell: this.name, reason: messageOf(failure) }))
      .then(() => this.#retryLater());
    this.#state = { is: 'closing', done: closed };
  }

  #noteFailure(error: unknown): void {
    const retryMs = this.#failure ? Math.min(this.#failure.retryMs * 2, RETRY_MS.max) : RETRY_MS.first;
    this.#failure = { reason: publicReason(error), retryMs };
  }

  /**
   * Only while this worker serves it, or had requests for it a moment ago. After that nobody here knows whether it is still
   * away: the next request finds out.
   */
  #retryLater(): void {
    if (this.#isClosed) return;
    const tryAgain = (): void => {
      this.#state = { is: 'resting', sinceMs: this.#nowMs };
      if (this.#isServed || !this.#isQuiet) this.#wake();
      else this.#failure = undefined;
    };
    const retryMs = this.#failure?.retryMs ?? RETRY_MS.first;
    this.#state = { is: 'away', retry: this.#context.first.clock.startTimer(retryMs, tryAgain, 'outside') };
  }

  get #isQuiet(): boolean {
    return this.#holders.size === 0 && this.#nowMs - this.#usedAtMs >= QUIET_MS;
  }

  /** Whether this worker can leave the cell until the next look. */
  get #mayRest(): boolean {
    return this.#isQuiet && this.inFlight === 0;
  }

  async #poll(): Promise<void> {
    const { watchCell } = this.#context;
    const { opened } = this;
    if (!(opened || this.#isServed)) return this.#endWatch();
    if (!watchCell || (opened && !this.#mayRest)) return;
    const dueInMs = await this.#dueInMs(watchCell);
    if (!opened) this.#stayOrWake(dueInMs);
    else if (!this.#isServed || dueInMs >= REST_MIN_MS) await this.#startRest(opened);
    else this.#usedAtMs = this.#nowMs; // this worker will do what is due soon
  }

  /** In how long there is something to do; 0: now, or the cell does not say. */
  async #dueInMs(watchCell: WatchCell): Promise<Millis> {
    try {
      this.#watch ??= watchCell(this.#url());
      const { isNeglected, dueInMs, eventInMs } = await this.#watch.poll();
      if (isNeglected) return 0;
      return this.#context.first.operatorEvents ? Math.min(dueInMs, eventInMs) : dueInMs;
    } catch {
      return 0; // whoever opens it meets the same failure, and reports it
    }
  }

  #stayOrWake(dueInMs: Millis): void {
    const state = this.#state;
    if (!this.#isServed || (state.is !== 'unseen' && state.is !== 'resting')) return;
    const sinceMs = state.is === 'resting' ? state.sinceMs : this.#nowMs;
    const isLong = this.#nowMs - sinceMs >= this.#restMaxMs;
    if (dueInMs <= AHEAD_MS || isLong) return this.#wake();
    this.#state = { is: 'resting', sinceMs };
    this.#listen();
  }

  async #startRest(opened: Opened): Promise<void> {
    const { worker, log } = this.#context.first;
    const claims = await opened.store.workers.claimsOf({ worker }).catch(() => undefined);
    if (claims?.length !== 0 || this.opened !== opened || this.#isClosed || !this.#mayRest) return;
    const closed = close(opened, ENDING_MS).then(() => {
      if (this.#failure) return this.#retryLater(); // lost meanwhile
      this.#state = { is: 'resting', sinceMs: this.#nowMs };
      log.info('cell_rests', { cell: this.name });
      if (this.#isServed) this.#listen();
    });
    this.#state = { is: 'closing', done: closed };
  }

  /** Looks at once when another worker says that something is due. */
  #listen(): void {
    if (!this.#watch || this.#watch.isListening) return;
    this.#watch.isListening = true;
    this.#watch.listen(() => this.serve(this.#isServed));
  }

  async #endWatch(): Promise<void> {
    const watch = this.#watch;
    this.#watch = undefined;
    await watch?.close();
  }

  /** Different for each cell, so that cells which began to rest together, as at a start, are not opened together. */
  get #restMaxMs(): Millis {
    return REST_MAX_MS - (this.#cell.cellId % MINUTES_OF_OPENING) * MINUTE_MS;
  }

  #url(): string {
    return unseal(this.#cell.sealedUrl, this.#context.sealer.encryptionKey, `the URL of the cell "${this.name}"`);
  }
}

async function close({ store, engine }: Opened, limitMs: Millis): Promise<void> {
  await engine.drain(limitMs);
  await store.close();
}
