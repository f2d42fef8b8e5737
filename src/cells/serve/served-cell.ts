/**
 * One cell beside the first, as a worker serves it: opened when there is something to do, with the projects that live
 * there, and at rest when it has been quiet for a while. A worker whose turn it is looks at a cell at rest as often as it
 * would send heartbeats there. Any other leaves it alone until somebody asks for one of its projects.
 */

import type { Sealer } from '../../accounts/accounts.ts';
import { unseal } from '../../config/sealing.ts';
import type { Cell, Project } from '../../engine/accounts/store.ts';
import type { CellState, Engine } from '../../engine/commands.ts';
import type { Millis, ProjectId, WorkerId } from '../../engine/model.ts';
import type { Clock, EventLog, Timer } from '../../engine/ports.ts';
import { publicReason, StoreUnavailable } from '../../engine/store-errors.ts';
import type { Totals } from '../../engine/unfinished.ts';
import { within } from '../../engine/within.ts';
import { messageOf, type OpenCell, type WatchCell } from '../../operations/open-store.ts';
import type { Store } from '../../store/store.ts';

export interface ServedCellOptions {
  sealer: Sealer;
  openCell: OpenCell;
  /** Absent: a cell that is open stays so. */
  watchCell?: WatchCell | undefined;
  /** Throws `StoreUnavailable`. */
  createEngine: (store: Store) => Promise<Engine>;
  worker: WorkerId;
  /** Whether the operator is told of what happens. */
  tellsOperator: boolean;
  clock: Clock;
  log: EventLog;
}

export interface Opened {
  store: Store;
  engine: Engine;
}

const AGAIN_MS = { first: 500, max: 10_000 };
/** A request waits so long for a cell that is being opened. */
const OPENED_IN_MS = 2_000;
/** After the last request. */
const QUIET_MS = 30_000;
/** A cell in which something is due sooner is not worth closing. */
const REST_MIN_MS = 60_000;
/** A cell at rest is opened so long before something is due: longer than from one look to the next. */
const AHEAD_MS = 10_000;
/** What is past its time is dropped in an open cell only. */
const REST_MAX_MS = 3_600_000;
const MINUTE_MS = 60_000;
const MINUTES_OF_OPENING = 30;
/** Nothing is under way when a cell goes to rest, as far as is known. What begins at that moment has so long. */
const ENDING_MS = 10_000;

export class ServedCell implements CellState {
  readonly cell: Cell;
  readonly #options: ServedCellOptions;
  #opened: Opened | undefined;
  /** Live there by the directory, and may be unknown to the cell. */
  readonly #toAdopt = new Map<ProjectId, Project>();
  readonly #known = new Set<ProjectId>();
  #adopting: Promise<void> | undefined;
  /** Being opened, or closed. */
  #changing: Promise<void> | undefined;
  #isServed = false;
  /** Whether it could not be opened when that was last tried, and is to be tried again. */
  #isAway = false;
  /** Why it was away when that was last tried. */
  #awayBecause = 'it is being opened';
  #againMs = AGAIN_MS.first;
  #timer: Timer | undefined;
  #watch: ReturnType<WatchCell> | undefined;
  /** Whether `#watch` does. */
  #isListening = false;
  #looking: Promise<void> | undefined;
  /** Undefined: it has not been open yet, and nobody has looked at it. */
  #restsSinceMs: Millis | undefined;
  #usedAtMs: Millis = -Infinity;
  /** Requests under way, and those who watch. */
  #users = 0;
  readonly #lossListeners = new Set<() => void>();
  #isClosed = false;

  constructor(cell: Cell, options: ServedCellOptions) {
    this.cell = cell;
    this.#options = options;
  }

  get name(): string {
    return this.cell.name;
  }

  /** Undefined while it cannot be opened, and at rest. */
  get opened(): Opened | undefined {
    return this.#opened;
  }

  /** Whether its projects are refused, as far as is known. */
  get isAway(): boolean {
    return this.#isAway || (this.#isServed && !this.#opened && this.#restsSinceMs === undefined);
  }

  /** As `StoreUnavailable.reason`. */
  get awayBecause(): string {
    return this.#awayBecause;
  }

  get isServed(): boolean {
    return this.#isServed;
  }

  /** Whether somebody waits for the answer of a look. */
  get isLooking(): boolean {
    return this.#looking !== undefined;
  }

  get state(): CellState['state'] {
    if (this.#opened) return 'open';
    if (this.isAway) return 'away';
    return this.#changing === undefined ? 'resting' : 'changing';
  }

  get inFlight(): number {
    return this.#opened?.engine.inFlight ?? 0;
  }

  async readTotals(): Promise<Totals> {
    if (this.#opened) return this.#opened.engine.readTotals();
    try {
      const totals = await this.#watch?.readTotals();
      if (totals) return totals;
    } catch (error) {
      throw new StoreUnavailable(messageOf(error), { cause: error });
    }
    throw new StoreUnavailable(`the cell "${this.name}" is closed`);
  }

  /**
   * Whether this worker serves it. To be called again and again: each time it is looked at, opened, or put to rest. `opens`: it is opened
   * when this worker begins to serve it, so that the first request need not wait. Otherwise only if there is something to do.
   */
  serve(isServed: boolean, { opens = false } = {}): void {
    const isNew = isServed && !this.#isServed;
    this.#isServed = isServed;
    if (this.#isClosed || this.#changing || this.#timer) return;
    if (isNew && (opens || !this.#options.watchCell)) return this.#wake();
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
  }

  /** For a request, which may come to a cell at rest. Throws `StoreUnavailable` when it is away. */
  async use<T>(work: (opened: Opened) => Promise<T>): Promise<T> {
    const release = this.hold();
    try {
      return await work(this.#opened ?? (await this.#openedSoon()));
    } finally {
      release();
    }
  }

  /** Does not go to rest until the answer is called. `onLost`: called if its database is lost meanwhile. */
  hold(onLost: () => void = () => {}): () => void {
    this.#users += 1;
    this.#lossListeners.add(onLost);
    return () => {
      this.#users -= 1;
      this.#lossListeners.delete(onLost);
      this.#usedAtMs = this.#options.clock.elapsedMs;
    };
  }

  /** Opens it though nobody may ask for it: something of this worker may be there. */
  visit(): void {
    this.#usedAtMs = this.#options.clock.elapsedMs;
    this.#wake();
  }

  /** These projects live here now. */
  adopt(projects: readonly Project[]): void {
    for (const project of projects) {
      if (!this.#known.has(project.projectId)) this.#toAdopt.set(project.projectId, project);
    }
    if (this.#toAdopt.size > 0) void this.adopted();
  }

  /** Resolves when the cell knows the projects that live here, or cannot be told now. */
  async adopted(): Promise<void> {
    this.#adopting ??= this.#adopt().finally(() => {
      this.#adopting = undefined;
    });
    await this.#adopting;
  }

  /** As `Engine.quiesce`. It is not opened any more. */
  async quiesce(limitMs: Millis): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#changing;
    await this.#looking;
    await this.#adopting;
    await this.#opened?.engine.quiesce(limitMs);
  }

  /** Once it is quiescent. */
  async close(): Promise<void> {
    if (this.#opened) await this.#close(this.#opened, 0);
    await this.#lookAway();
  }

  /** Throws `StoreUnavailable`. */
  async #openedSoon(): Promise<Opened> {
    this.#wake();
    // Perhaps it is being closed, and opened after that.
    for (let waits = 0; waits < 2 && !this.#opened && !this.#isAway; waits += 1) {
      if (this.#changing !== undefined) await within(this.#options.clock, OPENED_IN_MS, this.#changing);
      this.#wake();
    }
    if (this.#opened) return this.#opened;
    throw new StoreUnavailable(`the cell "${this.name}" cannot be reached`);
  }

  #wake(): void {
    if (this.#isClosed || this.#opened || this.#changing || this.#timer) return;
    this.#change(this.#open());
  }

  #change(work: Promise<void>): void {
    this.#changing = work.finally(() => {
      this.#changing = undefined;
    });
  }

  async #open(): Promise<void> {
    const { openCell, createEngine, log } = this.#options;
    const { cellId, name } = this.cell;
    let store: Store | undefined;
    try {
      await this.#lookAway();
      store = await openCell(this.#url(), (error) => this.#lose(error), { mustExist: true });
      const found = await store.cells.readCellId();
      if (found !== cellId) throw new StoreUnavailable(`its database is ${found ?? 'not yet'} cell ${cellId}`);
      store.guardProjects();
      await this.#tell(store);
      this.#opened = { store, engine: await createEngine(store) };
      this.#isAway = false;
      this.#againMs = AGAIN_MS.first;
      this.#usedAtMs = this.#options.clock.elapsedMs;
      log.info('cell_opened', { cell: name });
    } catch (error) {
      await store?.close();
      this.#isAway = true;
      this.#awayBecause = publicReason(error);
      log.warn('cell_not_opened', { cell: name, reason: messageOf(error) });
      this.#tryAgain();
    }
  }

  /** The database cannot be trusted any more. What this worker had of it is given back by others. */
  #lose(error: Error): void {
    const { log } = this.#options;
    log.error('cell_lost', { cell: this.name, reason: error.message });
    const lost = this.#opened;
    this.#opened = undefined;
    this.#isAway = true;
    this.#awayBecause = publicReason(error);
    for (const onLost of this.#lossListeners) onLost();
    if (!lost || this.#isClosed) return;
    this.#change(
      this.#close(lost, 0)
        .catch((failure: unknown) => log.warn('cell_not_closed', { cell: this.name, reason: messageOf(failure) }))
        .then(() => this.#tryAgain()),
    );
  }

  async #close({ store, engine }: Opened, limitMs: Millis): Promise<void> {
    await engine.drain(limitMs);
    await store.close();
  }

  /**
   * Only as long as this worker serves it, or was asked for it a while ago. After that nobody here knows whether it is
   * still away: the next request finds out.
   */
  #tryAgain(): void {
    if (this.#isClosed) return;
    this.#timer = this.#options.clock.startTimer(
      this.#againMs,
      () => {
        this.#timer = undefined;
        if (this.#isServed || !this.#isQuiet) this.#wake();
        else this.#isAway = false;
      },
      'outside',
    );
    this.#againMs = Math.min(this.#againMs * 2, AGAIN_MS.max);
  }

  get #isQuiet(): boolean {
    return this.#users === 0 && this.#options.clock.elapsedMs - this.#usedAtMs >= QUIET_MS;
  }

  /** Whether all that this worker has there may wait until somebody looks. */
  #mayRest(): boolean {
    return this.#isQuiet && this.inFlight === 0;
  }

  async #look(): Promise<void> {
    const { watchCell, clock, tellsOperator } = this.#options;
    const opened = this.#opened;
    if (!(opened || this.#isServed)) return this.#lookAway();
    if (!watchCell || (opened && !this.#mayRest())) return;
    let dueInMs = 0;
    try {
      this.#watch ??= watchCell(this.#url());
      const look = await this.#watch.look();
      if (!look.isNeglected) dueInMs = Math.min(look.dueInMs, tellsOperator ? look.eventInMs : Infinity);
    } catch {
      // Whoever opens it finds the same, and says so.
    }
    if (!opened) {
      if (!this.#isServed) return;
      const isLong = clock.elapsedMs - (this.#restsSinceMs ?? clock.elapsedMs) >= this.#restMaxMs;
      if (dueInMs <= AHEAD_MS || isLong || this.#isAway) return this.#wake();
      this.#restsSinceMs ??= clock.elapsedMs;
      this.#listen();
    } else if (!this.#isServed || dueInMs >= REST_MIN_MS) await this.#beginRest(opened);
    else this.#usedAtMs = clock.elapsedMs; // what is due soon will be done here
  }

  async #lookAway(): Promise<void> {
    const watch = this.#watch;
    this.#watch = undefined;
    this.#isListening = false;
    await watch?.close();
  }

  async #beginRest(opened: Opened): Promise<void> {
    const claims = await opened.store.workers.claimsOf({ worker: this.#options.worker }).catch(() => undefined);
    if (claims?.length !== 0 || this.#opened !== opened || this.#isClosed || !this.#mayRest()) return;
    this.#opened = undefined;
    this.#change(
      this.#close(opened, ENDING_MS).then(() => {
        this.#restsSinceMs = this.#options.clock.elapsedMs;
        this.#options.log.info('cell_rests', { cell: this.name });
        if (this.#isServed) this.#listen();
      }),
    );
  }

  /** While it is at rest. */
  #listen(): void {
    if (this.#isListening || !this.#watch) return;
    this.#isListening = true;
    this.#watch.listen(() => this.serve(this.#isServed));
  }

  /** Of cells that begin to rest together, as when the worker starts, a few are opened in each minute. */
  get #restMaxMs(): Millis {
    return REST_MAX_MS - (this.cell.cellId % MINUTES_OF_OPENING) * MINUTE_MS;
  }

  #url(): string {
    return unseal(this.cell.sealedUrl, this.#options.sealer.encryptionKey, `the URL of the cell "${this.name}"`);
  }

  async #adopt(): Promise<void> {
    try {
      while (this.#opened && this.#toAdopt.size > 0) await this.#tell(this.#opened.store);
    } catch (error) {
      // Its projects are refused until the accounts are read again.
      if (!(error instanceof StoreUnavailable)) throw error;
    }
  }

  async #tell(store: Store): Promise<void> {
    const projects = [...this.#toAdopt.values()];
    if (projects.length > 0) await store.cells.adoptProjects({ projects });
    for (const { projectId } of projects) {
      this.#known.add(projectId);
      this.#toAdopt.delete(projectId);
    }
  }
}
