/**
 * The cells of an installation, as one worker serves them: each with a store and an engine of its own, so that one that
 * is away keeps nobody waiting but its own projects. The first one is always open. Of the others a worker serves its share,
 * and opens any for a request.
 */

import type { StoredAccounts } from '../../accounts/accounts.ts';
import { Alarm } from '../../engine/alarm.ts';
import type { Engine } from '../../engine/commands.ts';
import type { LogWatcher } from '../../engine/live/feed.ts';
import { type CellId, type ClaimToken, FIRST_CELL, type Millis, type ProjectId } from '../../engine/model.ts';
import { StoreUnavailable } from '../../engine/store-errors.ts';
import type { Store } from '../../store/store.ts';
import { followed } from './followed.ts';
import type { PausedMoves } from './paused-moves.ts';
import type { ProjectFence } from './project-fence.ts';
import { type Opened, ServedCell, type ServedCellOptions } from './served-cell.ts';
import { CELLS_OF_WORKER, cellsServed } from './share.ts';

export interface CellsOptions extends Omit<ServedCellOptions, 'createEngine'> {
  /** The first store, which is open already. */
  store: Store;
  accounts: Pick<StoredAccounts, 'cells' | 'residents' | 'refresh' | 'onRead'>;
  /** Puts an engine over the store of a cell. `name`: of a cell that is not the first. Throws `StoreUnavailable`. */
  createEngine: (store: Store, name?: string) => Promise<Engine>;
  /** As for heartbeats. */
  timeoutMs: Millis;
  /** Of all engines. */
  projects: Pick<ProjectFence, 'noteLeft'>;
  /** Looks at the moves of projects between cells. */
  pausedMoves?: Pick<PausedMoves, 'look'> | undefined;
  /** How many a worker serves before they are divided. Default: see there. */
  cellsOfWorker?: number | undefined;
}

/** From one look at the cells to the next, at the most. Cells at rest are looked at as often as heartbeats are sent. */
const LOOK_MS_MAX = 5_000;
const LOOKS_PER_TIMEOUT = 3;
/** Until somebody who watches a log is told to look at it again in a cell that could not be opened. */
const WATCH_AGAIN_MS = 2_000;

export class Cells {
  readonly #options: CellsOptions;
  readonly #first: Opened;
  /** All but the first. */
  readonly #others = new Map<CellId, ServedCell>();
  readonly #alarm: Alarm;
  /** How many of the cells have been looked at in this round. */
  #looked = 0;
  /** Where projects lived when the accounts were read the last time. */
  #residents: StoredAccounts['residents'] = new Map();
  #isClosed = false;

  private constructor(options: CellsOptions, first: Opened) {
    this.#options = options;
    this.#first = first;
    this.#alarm = new Alarm(options.clock, () => this.#look());
  }

  /** Resolves when the first cell delivers; the others are opened as soon as they can be. Throws `StoreUnavailable`. */
  static async open(options: CellsOptions): Promise<Cells> {
    const { store, accounts } = options;
    if (accounts.cells.length > 0) store.guardProjects();
    const cells: Cells = new Cells(options, {
      store,
      engine: await options.createEngine(followed(store, (...args) => cells.#inCellOf(...args))),
    });
    accounts.onRead(() => cells.#follow());
    cells.#follow();
    return cells;
  }

  /** What is open of the cell of the project; undefined: it is at rest. Throws `StoreUnavailable` while it is away. */
  openedOf(projectId: ProjectId): Opened | undefined {
    const cell = this.#cellOf(projectId);
    if (cell === undefined) return this.#first;
    if (!cell.opened && cell.isAway) throw new StoreUnavailable(`the cell "${cell.name}" cannot be reached`);
    return cell.opened;
  }

  /** Opens the cell of the project if need be. Throws `StoreUnavailable` while it is away. */
  async use<T>(projectId: ProjectId, work: (opened: Opened) => Promise<T>): Promise<T> {
    const cell = this.#cellOf(projectId);
    return cell === undefined ? work(this.#first) : cell.use(work);
  }

  /** As `Engine.watchLog`, in whichever cell the project lives now. */
  watchLog(projectId: ProjectId, watcher: LogWatcher): () => void {
    const cell = this.#cellOf(projectId);
    if (cell === undefined) return this.#first.engine.watchLog(projectId, watcher);
    const release = cell.hold(() => watcher.leave());
    let unwatch: (() => void) | undefined;
    let isOver = false;
    const begin = (): void => {
      if (isOver) return;
      cell
        .use(async ({ engine }) => {
          if (!isOver) unwatch = engine.watchLog(projectId, watcher);
        })
        .catch(() => again.setIn(WATCH_AGAIN_MS));
    };
    const again = new Alarm(this.#options.clock, begin);
    begin();
    return () => {
      isOver = true;
      again.cancel();
      unwatch?.();
      release();
    };
  }

  /** Of the cells that are open. */
  get engines(): Engine[] {
    return [this.#first, ...[...this.#others.values()].flatMap(({ opened }) => opened ?? [])].map(
      ({ engine }) => engine,
    );
  }

  /** All but the first, open or not. */
  get others(): Iterable<ServedCell> {
    return this.#others.values();
  }

  get first(): Engine {
    return this.#first.engine;
  }

  get firstName(): string {
    return this.#options.accounts.cells.find(({ cellId }) => cellId === FIRST_CELL)?.name ?? '';
  }

  /** Of the cell in which the project lives; `undefined`: there is only one. */
  nameOf(projectId: ProjectId): string | undefined {
    const { accounts } = this.#options;
    const cellId = accounts.residents.get(projectId)?.cellId ?? FIRST_CELL;
    return accounts.cells.find((cell) => cell.cellId === cellId)?.name;
  }

  /** Whether an engine of this worker has the message of this claim, wherever its project lives by now. */
  hold(claimToken: ClaimToken): boolean {
    return this.engines.some((engine) => engine.holds(claimToken));
  }

  /** Reads where projects live; the cell of `projectId` knows it then. Throws `StoreUnavailable`. */
  async refresh(projectId: ProjectId): Promise<void> {
    await this.#options.accounts.refresh();
    await this.#cellOf(projectId)?.adopted();
  }

  /** As `Engine.quiesce`. */
  async quiesce(limitMs: Millis): Promise<void> {
    this.#isClosed = true;
    this.#alarm.cancel();
    const others = [...this.#others.values()];
    await Promise.all([this.#first.engine.quiesce(limitMs), ...others.map((cell) => cell.quiesce(limitMs))]);
  }

  /** As `Engine.drain`, and closes all stores but the first. */
  async drain(limitMs: Millis): Promise<void> {
    // What becomes of an attempt whose project has moved is saved in another cell than that of its engine: none is closed before.
    await this.quiesce(limitMs);
    const others = [...this.#others.values()];
    await Promise.all([this.#first.engine.drain(limitMs), ...others.map((cell) => cell.close())]);
  }

  /** Undefined: the first. Throws `StoreUnavailable`. */
  #cellOf(projectId: ProjectId): ServedCell | undefined {
    const cellId = this.#options.accounts.residents.get(projectId)?.cellId ?? FIRST_CELL;
    if (cellId === FIRST_CELL) return undefined;
    const cell = this.#others.get(cellId);
    if (cell) return cell;
    throw new StoreUnavailable(`the cell ${cellId} is not known yet`);
  }

  async #inCellOf<T>(projectId: ProjectId, work: (store: Store) => Promise<T>): Promise<T> {
    await this.refresh(projectId);
    return this.use(projectId, ({ store }) => work(store));
  }

  /** Goes by the accounts as they were just read: learns of new cells, and lets new projects live in theirs. */
  #follow(): void {
    const { accounts, store, projects } = this.#options;
    if (this.#isClosed || accounts.cells.length === 0) return;
    store.guardProjects();
    const before = this.#residents;
    this.#residents = accounts.residents;
    const moved = [...accounts.residents.values()].filter(
      ({ projectId, cellId }) => (before.get(projectId)?.cellId ?? cellId) !== cellId,
    );
    projects.noteLeft(moved.map(({ projectId }) => projectId));
    const visited = new Set(moved.map(({ cellId }) => cellId));
    const byCell = Map.groupBy(accounts.residents.values(), ({ cellId }) => cellId);
    for (const cell of accounts.cells) {
      if (cell.cellId === FIRST_CELL) continue;
      const served = this.#others.get(cell.cellId) ?? this.#add(cell);
      served.adopt(byCell.get(cell.cellId) ?? []);
      // Attempts that this worker has under way have moved along, and count as lost without its heartbeat there.
      if (visited.has(cell.cellId)) served.visit();
    }
    this.#look();
  }

  /**
   * Serves this worker's share of the cells, and looks whether it may leave others. Of many cells some at a time, and no more while as
   * many have not answered: a thousand looks at once would wait for each other until they were given up.
   */
  #look(): void {
    const { worker, timeoutMs, cellsOfWorker = CELLS_OF_WORKER, pausedMoves } = this.#options;
    const cells = [...this.#others];
    const looksOfRound = Math.max(1, Math.ceil(cells.length / cellsOfWorker));
    this.#alarm.setIn(Math.min(LOOK_MS_MAX, timeoutMs / LOOKS_PER_TIMEOUT) / looksOfRound);
    if (cells.filter(([, cell]) => cell.isLooking).length >= cellsOfWorker) return;
    const others = this.#first.engine.otherWorkers;
    if (this.#looked >= cells.length) this.#looked = 0;
    if (this.#looked === 0 && others.every((other) => other > worker)) void pausedMoves?.look();
    const served = cellsServed([...this.#others.keys()], { worker, others }, cellsOfWorker);
    const opensAll = cells.length <= cellsOfWorker;
    for (const [cellId, cell] of cells.slice(this.#looked, this.#looked + cellsOfWorker)) {
      cell.serve(served.has(cellId), { opens: opensAll });
    }
    this.#looked += cellsOfWorker;
  }

  #add(cell: ServedCell['cell']): ServedCell {
    const { createEngine } = this.#options;
    const served = new ServedCell(cell, {
      ...this.#options,
      createEngine: (store) =>
        createEngine(
          followed(store, (...args) => this.#inCellOf(...args)),
          cell.name,
        ),
    });
    this.#others.set(cell.cellId, served);
    return served;
  }
}
