/**
 * Serves the cells of an installation on one worker. Each cell has a store and an engine of its own, so that an
 * unreachable cell delays only its own projects. The first cell is always open. A worker serves its share of the other
 * cells, and opens any cell for a request.
 */

import type { PlacedProjects } from '../../accounts/accounts.ts';
import type { Engine } from '../../engine/commands.ts';
import type { LogWatcher } from '../../engine/live/feed.ts';
import { Alarm } from '../../engine/loops/alarm.ts';
import { type CellId, type ClaimToken, FIRST_CELL, type Millis, type ProjectId } from '../../engine/model.ts';
import { StoreUnavailable } from '../../engine/store-errors.ts';
import type { ProjectFence } from '../../engine/workers/project-fence.ts';
import type { Store } from '../../store/store.ts';
import { assignedCells, CELLS_PER_WORKER } from './cell-assignment.ts';
import type { CellsContext } from './context.ts';
import { followMoves } from './follow-moves.ts';
import { PausedMoves } from './paused-moves.ts';
import { type OpenedCell, ServedCell } from './served-cell.ts';

/** Creates the engine of a cell. `name`: the cell's name, absent for the first cell. Throws `StoreUnavailable`. */
export type CreateEngine = (store: Store, name?: string) => Promise<Engine>;

/** The longest time between two polls of the cells. Cells at rest are polled as often as heartbeats are sent. */
const POLL_MS_MAX = 5_000;
const POLLS_PER_TIMEOUT = 3;
/** Pause before the log of a cell that could not be opened is watched again. */
const WATCH_RETRY_MS = 2_000;

export class Cells {
  readonly #context: CellsContext;
  readonly #createEngine: CreateEngine;
  /** The fence of projects in all engines. */
  readonly #projectFence: Pick<ProjectFence, 'noteLeft'>;
  readonly #first: OpenedCell;
  /** All cells but the first. */
  readonly #others = new Map<CellId, ServedCell>();
  readonly #pausedMoves: PausedMoves | undefined;
  readonly #alarm: Alarm;
  /** How many cells were polled in this round. */
  #polled = 0;
  /** The projects with their cells at the latest read of the accounts. */
  #placedProjects: PlacedProjects = new Map();
  #isClosed = false;

  /** Resolves when the first cell delivers; the other cells are opened later. Throws `StoreUnavailable`. */
  static async open(context: CellsContext, createEngine: CreateEngine, projects: ProjectFence): Promise<Cells> {
    const { accounts, first } = context;
    const { store } = first;
    if (accounts.cells.length > 0) store.guardProjects();
    const engine = await createEngine(followMoves(store, (...args) => cells.#withCellOf(...args)));
    const cells: Cells = new Cells(context, createEngine, projects, { store, engine });
    accounts.onRead(() => cells.#applyAccounts());
    cells.#applyAccounts();
    return cells;
  }

  private constructor(context: CellsContext, createEngine: CreateEngine, projects: ProjectFence, first: OpenedCell) {
    this.#context = context;
    this.#createEngine = createEngine;
    this.#projectFence = projects;
    this.#first = first;
    if (context.openDriver) this.#pausedMoves = new PausedMoves(context, context.openDriver);
    this.#alarm = new Alarm(context.first.clock, () => this.#pollCells());
  }

  /** The open cell of the project. Undefined if the cell is resting. Throws `StoreUnavailable` while the cell is away. */
  openedOf(projectId: ProjectId): OpenedCell | undefined {
    const cell = this.#cellOf(projectId);
    if (cell === undefined) return this.#first;
    if (!cell.opened && cell.awayReason !== undefined)
      throw new StoreUnavailable(`the cell "${cell.name}" cannot be reached`);
    return cell.opened;
  }

  /**
   * Calls `work` with the project's cell. A resting cell is opened first. Throws `StoreUnavailable` while the cell is
   * away.
   */
  async use<T>(projectId: ProjectId, work: (opened: OpenedCell) => Promise<T>): Promise<T> {
    const cell = this.#cellOf(projectId);
    return cell === undefined ? work(this.#first) : cell.use(work);
  }

  /** Like `Engine.watchLog`, in the current cell of the project. */
  watchLog(projectId: ProjectId, watcher: LogWatcher): () => void {
    const cell = this.#cellOf(projectId);
    if (cell === undefined) return this.#first.engine.watchLog(projectId, watcher);
    const release = cell.keepOpen(() => watcher.close());
    let unwatch: (() => void) | undefined;
    let hasEnded = false;
    const watch = (): void => {
      if (hasEnded) return;
      cell
        .use(async ({ engine }) => {
          if (!hasEnded) unwatch = engine.watchLog(projectId, watcher);
        })
        .catch(() => retryAlarm.setIn(WATCH_RETRY_MS));
    };
    const retryAlarm = new Alarm(this.#context.first.clock, watch);
    watch();
    return () => {
      hasEnded = true;
      retryAlarm.cancel();
      unwatch?.();
      release();
    };
  }

  /** The engines of the open cells. */
  get engines(): Engine[] {
    return [this.#first, ...[...this.#others.values()].flatMap(({ opened }) => opened ?? [])].map(
      ({ engine }) => engine,
    );
  }

  /** All cells but the first, open or not. */
  get others(): Iterable<ServedCell> {
    return this.#others.values();
  }

  get first(): Engine {
    return this.#first.engine;
  }

  get firstName(): string {
    return this.#nameOf(FIRST_CELL) ?? '';
  }

  /** The name of the project's cell. Undefined if there is only one cell. */
  nameOf(projectId: ProjectId): string | undefined {
    return this.#nameOf(this.#cellIdOf(projectId));
  }

  /** Whether an engine of this worker works on the claim, whose project may have moved to another cell. */
  hasClaim(claimToken: ClaimToken): boolean {
    return this.engines.some((engine) => engine.hasActiveClaim(claimToken));
  }

  /** Reads the accounts again, and saves new projects in the cell of `projectId`. Throws `StoreUnavailable`. */
  async refresh(projectId: ProjectId): Promise<void> {
    await this.#context.accounts.refresh();
    await this.#cellOf(projectId)?.saveProjects();
  }

  /** Like `Engine.quiesce`, for all cells. */
  async quiesce(limitMs: Millis): Promise<void> {
    this.#isClosed = true;
    this.#alarm.cancel();
    const others = [...this.#others.values()];
    await Promise.all([this.#first.engine.quiesce(limitMs), ...others.map((cell) => cell.quiesce(limitMs))]);
  }

  /** Like `Engine.drain`, for all cells. Closes all stores but the first. */
  async drain(limitMs: Millis): Promise<void> {
    // The outcome of an attempt whose project has moved is saved in another cell, so no cell is closed before all are
    // quiescent.
    await this.quiesce(limitMs);
    const others = [...this.#others.values()];
    await Promise.all([this.#first.engine.drain(limitMs), ...others.map((cell) => cell.close())]);
  }

  /** The cell of the project. Undefined for the first cell. Throws `StoreUnavailable`. */
  #cellOf(projectId: ProjectId): ServedCell | undefined {
    const cellId = this.#cellIdOf(projectId);
    if (cellId === FIRST_CELL) return undefined;
    const cell = this.#others.get(cellId);
    if (cell) return cell;
    throw new StoreUnavailable(`the cell ${cellId} is not known yet`);
  }

  #cellIdOf(projectId: ProjectId): CellId {
    return this.#context.accounts.placedProjects.get(projectId)?.cellId ?? FIRST_CELL;
  }

  #nameOf(cellId: CellId): string | undefined {
    return this.#context.accounts.cells.find((cell) => cell.cellId === cellId)?.name;
  }

  async #withCellOf<T>(projectId: ProjectId, work: (store: Store) => Promise<T>): Promise<T> {
    await this.refresh(projectId);
    return this.use(projectId, ({ store }) => work(store));
  }

  /** Applies the accounts that were just read: adds new cells, and notes the projects of each cell. */
  #applyAccounts(): void {
    const { accounts, first } = this.#context;
    if (this.#isClosed || accounts.cells.length === 0) return;
    first.store.guardProjects();
    const before = this.#placedProjects;
    this.#placedProjects = accounts.placedProjects;
    const moved = [...accounts.placedProjects.values()].filter(
      ({ projectId, cellId }) => (before.get(projectId)?.cellId ?? cellId) !== cellId,
    );
    this.#projectFence.noteLeft(moved.map(({ projectId }) => projectId));
    const visited = new Set(moved.map(({ cellId }) => cellId));
    const byCell = Map.groupBy(accounts.placedProjects.values(), ({ cellId }) => cellId);
    for (const cell of accounts.cells) {
      if (cell.cellId === FIRST_CELL) continue;
      const served =
        this.#others.get(cell.cellId) ??
        new ServedCell(cell, this.#context, (store) => this.#createFor(store, cell.name));
      this.#others.set(cell.cellId, served);
      served.addProjects(byCell.get(cell.cellId) ?? []);
      // Attempts of this worker may have moved to this cell. Without a heartbeat in this cell, these attempts would count
      // as lost.
      if (visited.has(cell.cellId)) served.openForMovedAttempts();
    }
    this.#pollCells();
  }

  /**
   * Serves this worker's share of the cells, and closes other cells that may rest. Many cells are polled in groups. A
   * group starts only while fewer polls are pending than a group has cells: a thousand polls at once would delay each
   * other until they time out.
   */
  #pollCells(): void {
    const { cellsPerWorker = CELLS_PER_WORKER } = this.#context;
    const { worker, recovery } = this.#context.first;
    const cells = [...this.#others];
    const pollsPerRound = Math.max(1, Math.ceil(cells.length / cellsPerWorker));
    this.#alarm.setIn(Math.min(POLL_MS_MAX, recovery.timeoutMs / POLLS_PER_TIMEOUT) / pollsPerRound);
    if (cells.filter(([, cell]) => cell.isPolling).length >= cellsPerWorker) return;
    const others = this.#first.engine.otherWorkers;
    if (this.#polled >= cells.length) this.#polled = 0;
    if (this.#polled === 0 && others.every((other) => other > worker)) void this.#pausedMoves?.check();
    const served = assignedCells([...this.#others.keys()], { worker, others }, cellsPerWorker);
    const opensAll = cells.length <= cellsPerWorker;
    for (const [cellId, cell] of cells.slice(this.#polled, this.#polled + cellsPerWorker)) {
      cell.serve(served.has(cellId), { opens: opensAll });
    }
    this.#polled += cellsPerWorker;
  }

  #createFor(store: Store, name: string): Promise<Engine> {
    return this.#createEngine(
      followMoves(store, (...args) => this.#withCellOf(...args)),
      name,
    );
  }
}
