/**
 * Serves a cell other than the first on one worker: opens the cell when the cell has work, and closes the cell to rest
 * after a quiet time. A worker that serves a resting cell polls the cell as often as it sends heartbeats to an open cell.
 * All other workers ignore the cell until a request names one of its projects.
 */

import { messageOf, type WatchCell } from '../../admin/open-store.ts';
import { unseal } from '../../config/sealing.ts';
import type { Cell, Project } from '../../engine/accounts/store.ts';
import type { CellState, Engine } from '../../engine/commands.ts';
import type { Totals } from '../../engine/lists/unfinished.ts';
import { withTimeLimit } from '../../engine/loops/time-limit.ts';
import type { Millis } from '../../engine/model.ts';
import type { Timer } from '../../engine/ports.ts';
import { publicReason, StoreUnavailable } from '../../engine/store-errors.ts';
import type { Store } from '../../store/store.ts';
import type { CellsContext } from './context.ts';
import { UnsavedProjects } from './unsaved-projects.ts';

export interface OpenedCell {
  store: Store;
  engine: Engine;
}

/**
 *                  wake             database responds
 *   unseen, resting ---> opening -----------------> open
 *        ^                  | does not                | quiet, or its database is lost
 *        |    retry timer   v                         v
 *        +--------------- away <------ lost ------ closing ----> resting
 */
type ServedCellState =
  /** This worker has neither opened nor polled the cell. */
  | { is: 'unseen' }
  | { is: 'resting'; sinceMs: Millis }
  | { is: 'opening'; done: Promise<void>; isFirst: boolean }
  | { is: 'open'; opened: OpenedCell }
  | { is: 'closing'; done: Promise<void> }
  | { is: 'away'; retry: Timer };

const RETRY_MS = { first: 500, max: 10_000 };
/** The longest time that a request waits for a cell that is being opened. */
const OPEN_WAIT_MS = 2_000;
/** A cell may rest when its last request ended this long ago. */
const QUIET_MS = 30_000;
/** A cell is closed only if nothing is due in the cell for this long. */
const REST_MIN_MS = 60_000;
/** A resting cell is opened this long before its next work is due: longer than the time between two polls. */
const OPEN_AHEAD_MS = 10_000;
/** The longest rest: retention runs only in an open cell. */
const REST_MAX_MS = 3_600_000;
const MINUTE_MS = 60_000;
const REST_SPREAD_MINUTES = 30;
/** The time limit for draining a cell that is closed to rest, since attempts may have started at the last moment. */
const DRAIN_MS = 10_000;

export class ServedCell implements CellState {
  readonly #cell: Cell;
  readonly #context: CellsContext;
  /** Throws `StoreUnavailable`. */
  readonly #createEngine: (store: Store) => Promise<Engine>;
  readonly #unsavedProjects = new UnsavedProjects();
  /** Requests and watchers of logs, which keep the cell open. */
  readonly #users = new Set<{ onLost: () => void }>();
  #state: ServedCellState = { is: 'unseen' };
  /** Why the latest attempt to open the cell failed. Absent if it succeeded, or the state of the cell is unknown. */
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

  /** Undefined unless the cell is open. */
  get opened(): OpenedCell | undefined {
    return this.#state.is === 'open' ? this.#state.opened : undefined;
  }

  /** Why requests for the cell's projects fail (`StoreUnavailable.reason`). Undefined if no reason is known. */
  get awayReason(): string | undefined {
    if (this.#failure) return this.#failure.reason;
    const { is } = this.#state;
    const isNew = is === 'unseen' || (is === 'opening' && this.#state.isFirst);
    return isNew && this.#isServed ? 'it is being opened' : undefined;
  }

  get isServed(): boolean {
    return this.#isServed;
  }

  /** Whether a poll is pending. */
  get isPolling(): boolean {
    return this.#polling !== undefined;
  }

  get state(): CellState['state'] {
    if (this.opened) return 'open';
    if (this.awayReason !== undefined) return 'away';
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
   * Sets whether this worker serves the cell. Call it regularly: each call polls the cell, and opens the cell or closes
   * the cell to rest. With `opens`, the cell is opened as soon as this worker serves it, so that the first request need
   * not wait; otherwise, the cell is opened only when there is work.
   */
  serve(isServed: boolean, { opens = false } = {}): void {
    const isNew = isServed && !this.#isServed;
    this.#isServed = isServed;
    if (this.#isClosed || 'done' in this.#state || this.#state.is === 'away') return;
    if (isNew && (opens || !this.#context.watchCell)) return this.#openIfResting();
    this.#polling ??= this.#poll().finally(() => {
      this.#polling = undefined;
    });
  }

  /** Does the work of a request. A resting cell is opened first. Throws `StoreUnavailable` when the cell is away. */
  async use<T>(work: (opened: OpenedCell) => Promise<T>): Promise<T> {
    const release = this.keepOpen();
    try {
      return await work(this.opened ?? (await this.#waitUntilOpen()));
    } finally {
      release();
    }
  }

  /**
   * Keeps an open cell open until the returned function is called. If the cell's database is lost before this call, calls
   * `onLost`.
   */
  keepOpen(onLost: () => void = () => {}): () => void {
    const user = { onLost };
    this.#users.add(user);
    return () => {
      this.#users.delete(user);
      this.#usedAtMs = this.#nowMs;
    };
  }

  /** Opens the cell without a request, because attempts of this worker may have moved to the cell. */
  openForMovedAttempts(): void {
    this.#usedAtMs = this.#nowMs;
    this.#openIfResting();
  }

  /** Adds projects that the directory has assigned to the cell. */
  addProjects(projects: readonly Project[]): void {
    this.#unsavedProjects.add(projects);
    void this.saveProjects();
  }

  /** Resolves when the assigned projects are saved in the cell's store, or the store cannot save them now. */
  async saveProjects(): Promise<void> {
    try {
      if (this.opened) await this.#unsavedProjects.save(this.opened.store);
    } catch (error) {
      // Requests for the unsaved projects fail until the accounts are read again.
      if (!(error instanceof StoreUnavailable)) throw error;
    }
  }

  /** Like `Engine.quiesce`. The cell is not opened again. */
  async quiesce(limitMs: Millis): Promise<void> {
    this.#isClosed = true;
    if (this.#state.is === 'away') this.#state.retry.cancel();
    if ('done' in this.#state) await this.#state.done;
    await this.#polling;
    await this.saveProjects();
    await this.opened?.engine.quiesce(limitMs);
  }

  /** Call this after `quiesce`. */
  async close(): Promise<void> {
    if ('done' in this.#state) await this.#state.done;
    if (this.opened) await close(this.opened, 0);
    await this.#endWatch();
  }

  get #nowMs(): Millis {
    return this.#context.first.clock.elapsedMs;
  }

  /** Throws `StoreUnavailable`. */
  async #waitUntilOpen(): Promise<OpenedCell> {
    this.#openIfResting();
    // A cell that is closing is opened again afterwards.
    for (let waits = 0; waits < 2 && !this.opened && !this.#failure; waits += 1) {
      if ('done' in this.#state) await withTimeLimit(this.#context.first.clock, OPEN_WAIT_MS, this.#state.done);
      this.#openIfResting();
    }
    if (this.opened) return this.opened;
    throw new StoreUnavailable(`the cell "${this.name}" cannot be reached`);
  }

  /** Opens the cell if it rests. */
  #openIfResting(): void {
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
      store = await openCell(this.#url(), (error) => this.#onLost(error), { mustExist: true });
      const found = await store.cells.readCellId();
      if (found !== cellId)
        throw new StoreUnavailable(
          `its database is ${found === undefined ? 'not yet' : `cell ${found}, not`} cell ${cellId}`,
        );
      store.guardProjects();
      await this.#unsavedProjects.save(store);
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

  /**
   * Closes the cell after the loss of its database, and opens it again. Other workers release this worker's claims in the
   * cell.
   */
  #onLost(error: Error): void {
    const { log } = this.#context.first;
    log.error('cell_lost', { cell: this.name, reason: error.message });
    const { opened } = this;
    this.#noteFailure(error);
    for (const { onLost } of this.#users) onLost();
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
   * Opens the cell again after a pause, if this worker still serves it or recently had a request for it. Otherwise the
   * state of the cell becomes unknown, and the next request opens the cell.
   */
  #retryLater(): void {
    if (this.#isClosed) return;
    const tryAgain = (): void => {
      this.#state = { is: 'resting', sinceMs: this.#nowMs };
      if (this.#isServed || !this.#isQuiet) this.#openIfResting();
      else this.#failure = undefined;
    };
    const retryMs = this.#failure?.retryMs ?? RETRY_MS.first;
    this.#state = { is: 'away', retry: this.#context.first.clock.startTimer(retryMs, tryAgain, 'outside') };
  }

  get #isQuiet(): boolean {
    return this.#users.size === 0 && this.#nowMs - this.#usedAtMs >= QUIET_MS;
  }

  /** Whether this worker has no work in the cell until the next poll. */
  get #mayRest(): boolean {
    return this.#isQuiet && this.inFlight === 0;
  }

  async #poll(): Promise<void> {
    const { watchCell } = this.#context;
    const { opened } = this;
    if (!(opened || this.#isServed)) return this.#endWatch();
    if (!watchCell || (opened && !this.#mayRest)) return;
    const dueInMs = await this.#dueInMs(watchCell);
    if (!opened) this.#openIfDue(dueInMs);
    else if (!this.#isServed || dueInMs >= REST_MIN_MS) await this.#startRest(opened);
    else this.#usedAtMs = this.#nowMs; // keeps the cell open for the work that is due soon
  }

  /** The time until there is work in the cell. 0 if there is work now, or if the time could not be read. */
  async #dueInMs(watchCell: WatchCell): Promise<Millis> {
    try {
      this.#watch ??= watchCell(this.#url());
      const { isNeglected, dueInMs, eventInMs } = await this.#watch.poll();
      if (isNeglected) return 0;
      return this.#context.first.operatorEvents ? Math.min(dueInMs, eventInMs) : dueInMs;
    } catch {
      return 0; // opening the cell then fails too, and reports the error
    }
  }

  #openIfDue(dueInMs: Millis): void {
    const state = this.#state;
    if (!this.#isServed || (state.is !== 'unseen' && state.is !== 'resting')) return;
    const sinceMs = state.is === 'resting' ? state.sinceMs : this.#nowMs;
    const isLong = this.#nowMs - sinceMs >= this.#restMaxMs;
    if (dueInMs <= OPEN_AHEAD_MS || isLong) return this.#openIfResting();
    this.#state = { is: 'resting', sinceMs };
    this.#listen();
  }

  async #startRest(opened: OpenedCell): Promise<void> {
    const { worker, log } = this.#context.first;
    const claims = await opened.store.workers.claimsOf({ worker }).catch(() => undefined);
    if (claims?.length !== 0 || this.opened !== opened || this.#isClosed || !this.#mayRest) return;
    const closed = close(opened, DRAIN_MS).then(() => {
      if (this.#failure) return this.#retryLater(); // the database was lost during the drain
      this.#state = { is: 'resting', sinceMs: this.#nowMs };
      log.info('cell_rests', { cell: this.name });
      if (this.#isServed) this.#listen();
    });
    this.#state = { is: 'closing', done: closed };
  }

  /** Polls at once when another worker notifies this worker that work is due. */
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

  /**
   * The longest rest of this cell. Differs from cell to cell, so that cells that started to rest together, as after a
   * server start, are not opened together.
   */
  get #restMaxMs(): Millis {
    return REST_MAX_MS - (this.#cell.cellId % REST_SPREAD_MINUTES) * MINUTE_MS;
  }

  #url(): string {
    return unseal(this.#cell.sealedUrl, this.#context.sealer.encryptionKey, `the URL of the cell "${this.name}"`);
  }
}

async function close({ store, engine }: OpenedCell, limitMs: Millis): Promise<void> {
  await engine.drain(limitMs);
  await store.close();
}
