/** One cell beside the first, as a worker serves it: opened when it can be, with the projects that live there. */
import type { Sealer } from '../../accounts/accounts.ts';
import { unseal } from '../../config/sealing.ts';
import type { Engine } from '../../engine/commands.ts';
import type { Millis, ProjectId } from '../../engine/model.ts';
import type { Clock, EventLog, Timer } from '../../engine/ports.ts';
import { StoreUnavailable } from '../../engine/store-errors.ts';
import type { Cell, Project, Store } from '../../engine/stores.ts';
import { messageOf, type OpenCell } from '../../operations/open-store.ts';

export interface ServedCellOptions {
  sealer: Sealer;
  openCell: OpenCell;
  /** Throws `StoreUnavailable`. */
  createEngine: (store: Store) => Promise<Engine>;
  clock: Clock;
  log: EventLog;
}

export interface Opened {
  store: Store;
  engine: Engine;
}

const AGAIN_MS = { first: 500, max: 10_000 };

export class ServedCell {
  readonly cell: Cell;
  readonly #options: ServedCellOptions;
  #opened: Opened | undefined;
  /** Live there by the directory, and may be unknown to the cell. */
  readonly #toAdopt = new Map<ProjectId, Project>();
  readonly #known = new Set<ProjectId>();
  #adopting: Promise<void> | undefined;
  #opening: Promise<void>;
  #againMs = AGAIN_MS.first;
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(cell: Cell, options: ServedCellOptions) {
    this.cell = cell;
    this.#options = options;
    this.#opening = this.#open();
  }

  get name(): string {
    return this.cell.name;
  }

  /** Undefined until it could be opened. */
  get opened(): Opened | undefined {
    return this.#opened;
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

  async drain(limitMs: Millis): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#opening;
    await this.#adopting;
    const { store, engine } = this.#opened ?? {};
    await engine?.drain(limitMs);
    await store?.close();
  }

  async #open(): Promise<void> {
    const { openCell, createEngine, sealer, log } = this.#options;
    const { cellId, name, sealedUrl } = this.cell;
    let store: Store | undefined;
    try {
      store = await openCell(unseal(sealedUrl, sealer.encryptionKey), (error) => this.#lose(error));
      const found = await store.cells.readCellId();
      if (found !== cellId) throw new StoreUnavailable(`its database is ${found ?? 'not yet'} cell ${cellId}`);
      store.guardProjects();
      await this.#tell(store);
      this.#opened = { store, engine: await createEngine(store) };
      log.info('cell_opened', { cell: name });
    } catch (error) {
      await store?.close();
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
    if (!lost || this.#isClosed) return;
    this.#opening = lost.engine
      .drain(0)
      .then(() => lost.store.close())
      .catch((failure: unknown) => log.warn('cell_not_closed', { cell: this.name, reason: messageOf(failure) }))
      .then(() => this.#tryAgain());
  }

  #tryAgain(): void {
    if (this.#isClosed) return;
    this.#timer = this.#options.clock.startTimer(
      this.#againMs,
      () => {
        this.#opening = this.#open();
      },
      'outside',
    );
    this.#againMs = Math.min(this.#againMs * 2, AGAIN_MS.max);
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
