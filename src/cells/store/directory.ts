/**
 * Reads and changes the directory, which is in the store of the first cell: the list of cells, and the cell of each
 * project. Each cell also has a row for each of its own projects.
 */

import type { Cell, Project } from '../../engine/accounts/store.ts';
import { type CellId, FIRST_CELL, NUMBERS_OF_CELL } from '../../engine/model.ts';
import type { Queries, Transaction } from '../../store/driver.ts';
import { noteChange } from '../../store/operations/accounts/version.ts';
import { PLACEMENT } from '../../store/operations/locking/placement.ts';
import type { WriteContext } from '../../store/operations/logs/log-writer.ts';
import { read, write } from '../../store/operations/operation.ts';

/** SQL condition for the rows of the table `numbers` whose numbers come from a range that belongs to the cell. */
export const RANGED_NUMBERS = "name in ('keys and tokens', 'log entries', 'queues')";

/** The range of numbers that belongs to the cell. `until`: one more than the last number. */
export function rangeOf(cellId: CellId): { first: number; until: number } {
  return { first: (cellId - 1) * NUMBERS_OF_CELL + 1, until: cellId * NUMBERS_OF_CELL };
}

const FIELDS = 'id as "cellId", name, url as "sealedUrl", added_at_ms as "addedAtMs", draining';

type CellRow = Omit<Cell, 'isDraining'> & { draining: number };

/** The cells of the installation. Empty while there is only one cell. */
export const listCells = read(async (queries: Queries): Promise<Cell[]> => {
  const rows = await queries.query<CellRow>(`select ${FIELDS} from cells order by id`);
  return rows.map(({ draining, ...cell }) => ({ ...cell, isDraining: draining === 1 }));
});

export interface AddCellArgs {
  name: string;
  sealedUrl: string;
  nowMs: number;
  /** The new name of the first cell, which has no name while it is the only cell. */
  firstName: string;
}

/** Adds a cell. If a cell with this name already exists, returns the existing cell. */
export const addCell = write(
  { changesAccounts: true },
  async ({ tx }: WriteContext, { name, sealedUrl, nowMs, firstName }: AddCellArgs): Promise<Cell> => {
    const cells = await listCells(tx, {});
    const found = cells.find((cell) => cell.name === name);
    if (found) return found;
    const columns = ['id', 'name', 'url', 'added_at_ms', 'draining'];
    if (cells.length === 0) {
      await tx.insertMany('cells', columns, [[FIRST_CELL, firstName, '', nowMs, 0]]);
      await tx.send(`update numbers set until = ? where ${RANGED_NUMBERS}`, [rangeOf(FIRST_CELL).until]);
    }
    const cellId = Math.max(FIRST_CELL, ...cells.map((cell) => cell.cellId)) + 1;
    await tx.insertMany('cells', columns, [[cellId, name, sealedUrl, nowMs, 0]]);
    await noteChange(tx);
    return { cellId, name, sealedUrl, addedAtMs: nowMs, isDraining: false };
  },
);

/** A draining cell gets no new projects. */
export const setCellDraining = write(
  { changesAccounts: true },
  async ({ tx }: WriteContext, { cellId, isDraining }: { cellId: CellId; isDraining: boolean }): Promise<void> => {
    await tx.send('update cells set draining = ? where id = ?', [isDraining ? 1 : 0, cellId]);
    await noteChange(tx);
  },
);

/** The id of this store as a cell. Undefined if the store was never made a cell. */
export const readCellId = read(async (queries: Queries): Promise<CellId | undefined> => {
  const [row] = await queries.query<{ next: number }>("select next from numbers where name = 'cell'");
  return row?.next;
});

/** Makes an unused store a cell. Returns the id of the cell, which may differ if the store already was one. */
export const initializeCell = write(async ({ tx }: WriteContext, { cellId }: { cellId: CellId }): Promise<CellId> => {
  const own = await readCellId(tx, {});
  if (own !== undefined) return own;
  const { first, until } = rangeOf(cellId);
  await tx.send(`update numbers set next = ?, until = ? where ${RANGED_NUMBERS}`, [first, until]);
  await tx.insertMany('numbers', ['name', 'next'], [['cell', cellId]]);
  return cellId;
});

/** The cell of a new project, and its placement in the directory's store. Default: the cell with the fewest projects. */
export async function cellForNewProject(
  queries: Queries,
  wanted?: CellId,
): Promise<{ cellId: CellId; placement: number }> {
  const cellId = wanted ?? (await emptiestCell(queries));
  return { cellId, placement: cellId === FIRST_CELL ? PLACEMENT.here : PLACEMENT.elsewhere };
}

/** The cell with the fewest projects, among the cells that are not draining. */
async function emptiestCell(queries: Queries): Promise<CellId> {
  const [row] = await queries.query<{ id: CellId }>(
    `select id, (select count(*) from projects where cell = cells.id) as projects from cells
     where draining = 0 order by projects, id limit 1`,
  );
  return row?.id ?? FIRST_CELL;
}

/**
 * Adds a project to this cell, unless the cell already has the project. Several workers may add a project at the same
 * time.
 */
export async function adoptProject(tx: Transaction, { projectId, name, createdAtMs }: Project): Promise<void> {
  await tx.run(
    `insert into projects (id, name, signing_current, signing_next, created_at_ms) values (?, ?, '', '', ?)
     on conflict (id) do nothing`,
    [projectId, name, createdAtMs],
  );
}

/**
 * Adds projects that the directory has assigned to this cell. A project that the cell already knows is not changed, since
 * the project may have moved away.
 */
export const adoptProjects = write(
  async ({ tx }: WriteContext, { projects }: { projects: Project[] }): Promise<void> => {
    const known = await tx.query<{ id: number }>('select id from projects where id in (??)', [
      projects.map(({ projectId }) => projectId),
    ]);
    const ids = new Set(known.map(({ id }) => id));
    await tx.insertMany(
      'projects',
      ['id', 'name', 'signing_current', 'signing_next', 'created_at_ms'],
      projects
        .filter(({ projectId }) => !ids.has(projectId))
        .map((each) => [each.projectId, each.name, '', '', each.createdAtMs]),
    );
  },
);
