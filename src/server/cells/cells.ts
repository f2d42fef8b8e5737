/**
 * The cells of an installation, as one worker serves them: each with a store and an engine of its own, so that one that
 * is away keeps nobody waiting but its own projects.
 */
import type { StoredAccounts } from '../../accounts/accounts.ts';
import type { Engine } from '../../engine/commands.ts';
import { type CellId, type ClaimToken, FIRST_CELL, type Millis, type ProjectId } from '../../engine/model.ts';
import { ProjectAway, StoreUnavailable } from '../../engine/store-errors.ts';
import type { Store } from '../../engine/stores.ts';
import { type Opened, ServedCell, type ServedCellOptions } from './served-cell.ts';

export interface CellsOptions extends Omit<ServedCellOptions, 'createEngine'> {
  /** The first store, which is open already. */
  store: Store;
  accounts: Pick<StoredAccounts, 'cells' | 'residents' | 'refresh' | 'onRead'>;
  /** Puts an engine over the store of a cell. `name`: of a cell that is not the first. Throws `StoreUnavailable`. */
  createEngine: (store: Store, name?: string) => Promise<Engine>;
}

export class Cells {
  readonly #options: CellsOptions;
  readonly #first: Opened;
  /** All but the first. */
  readonly #others = new Map<CellId, ServedCell>();
  #isClosed = false;

  private constructor(options: CellsOptions, first: Opened) {
    this.#options = options;
    this.#first = first;
  }

  /** Resolves when the first cell delivers; the others are opened as soon as they can be. Throws `StoreUnavailable`. */
  static async open(options: CellsOptions): Promise<Cells> {
    const { store, accounts } = options;
    if (accounts.cells.length > 0) store.guardProjects();
    const cells: Cells = new Cells(options, {
      store,
      engine: await options.createEngine(followed(store, (projectId) => cells.#storeAfterMove(projectId))),
    });
    accounts.onRead(() => cells.#follow());
    cells.#follow();
    return cells;
  }

  /** Throws `StoreUnavailable` while the cell of the project is away. */
  engineOf(projectId: ProjectId): Engine {
    return this.#openedOf(projectId).engine;
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

  /** Whether an engine of this worker has the message of this claim, wherever its project lives by now. */
  hold(claimToken: ClaimToken): boolean {
    return this.engines.some((engine) => engine.holds(claimToken));
  }

  /** Reads where projects live; the cell of `projectId` knows it then. Throws `StoreUnavailable`. */
  async refresh(projectId: ProjectId): Promise<void> {
    await this.#options.accounts.refresh();
    await this.#others.get(this.#cellOf(projectId))?.adopted();
  }

  /** As `Engine.drain`, and closes all stores but the first. */
  async drain(limitMs: Millis): Promise<void> {
    this.#isClosed = true;
    const others = [...this.#others.values()];
    await Promise.all([this.#first.engine.drain(limitMs), ...others.map((cell) => cell.drain(limitMs))]);
  }

  #openedOf(projectId: ProjectId): Opened {
    const cellId = this.#cellOf(projectId);
    if (cellId === FIRST_CELL) return this.#first;
    const cell = this.#others.get(cellId);
    if (cell?.opened) return cell.opened;
    throw new StoreUnavailable(`the cell "${cell?.name ?? cellId}" cannot be reached`);
  }

  #cellOf(projectId: ProjectId): CellId {
    return this.#options.accounts.residents.get(projectId)?.cellId ?? FIRST_CELL;
  }

  async #storeAfterMove(projectId: ProjectId): Promise<Store> {
    await this.refresh(projectId);
    return this.#openedOf(projectId).store;
  }

  /** Goes by the accounts as they were just read: serves new cells, and lets new projects live in theirs. */
  #follow(): void {
    const { accounts, store } = this.#options;
    if (this.#isClosed || accounts.cells.length === 0) return;
    store.guardProjects();
    for (const cell of accounts.cells) {
      if (cell.cellId === FIRST_CELL) continue;
      const served = this.#others.get(cell.cellId) ?? this.#serve(cell);
      served.adopt([...accounts.residents.values()].filter(({ cellId }) => cellId === cell.cellId));
    }
  }

  #serve(cell: ServedCell['cell']): ServedCell {
    const { createEngine } = this.#options;
    const served = new ServedCell(cell, {
      ...this.#options,
      createEngine: (store) =>
        createEngine(
          followed(store, (projectId) => this.#storeAfterMove(projectId)),
          cell.name,
        ),
    });
    this.#others.set(cell.cellId, served);
    return served;
  }
}

/**
 * The store of a cell as its engine sees it. An attempt that was under way when its project moved has been moved as one
 * that this worker has: what becomes of it is saved where the project lives now.
 */
function followed(store: Store, storeAfterMove: (projectId: ProjectId) => Promise<Store>): Store {
  const settle: Store['messages']['settle'] = async (settlement, nowMs) => {
    try {
      return await store.messages.settle(settlement, nowMs);
    } catch (error) {
      if (!(error instanceof ProjectAway && error.isGone)) throw error;
      return (await storeAfterMove(error.projectId)).messages.settle(settlement, nowMs);
    }
  };
  const messages = { ...store.messages, settle };
  return new Proxy(store, {
    get: (target, name) => {
      if (name === 'messages') return messages;
      const member: unknown = Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}
