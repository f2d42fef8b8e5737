/**
 * The cells of an installation, and the cell that this store is.
 *
 * The store of the first cell is also the directory: the list of cells, and the cell of each project. Each cell has a
 * row for each project that lives in it.
 */

import type { Cell, Project } from '../../engine/accounts/store.ts';
import { type CellId, FIRST_CELL, NUMBERS_OF_CELL } from '../../engine/model.ts';
import type { Queries, Transaction } from '../../store/driver.ts';
import { noteChange } from '../../store/operations/accounts/version.ts';
import { PLACEMENT } from '../../store/operations/locking/placement.ts';
import type { WriteContext } from '../../store/operations/logs/log-writer.ts';
import { read, write } from '../../store/operations/operation.ts';

/** The rows of `numbers` that a cell has a range of its own for. */
export const IN_RANGE = "name in ('keys and tokens', 'log entries', 'queues')";

/** `until`: the number behind the last one. */
export function rangeOf(cellId: CellId): { first: number; until: number } {
  return { first: (cellId - 1) * NUMBERS_OF_CELL + 1, until: cellId * NUMBERS_OF_CELL };
}

const FIELDS = 'id as "cellId", name, url as "sealedUrl", added_at_ms as "addedAtMs", draining';

type CellRow = Omit<Cell, 'isDraining'> & { draining: number };

/** Empty as long as there is only one. */
export const listCells = read(async (queries: Queries): Promise<Cell[]> => {
  const rows = await queries.query<CellRow>(`select ${FIELDS} from cells order by id`);
  return rows.map(({ draining, ...cell }) => ({ ...cell, isDraining: draining === 1 }));
});

export interface AddCellArgs {
  name: string;
  sealedUrl: string;
  nowMs: number;
  /** What the first cell is called from then on, if there was no other. */
  firstName: string;
}

/** Answers the cell of this name if there is one. */
export const addCell = write(
  { changesAccounts: true },
  async ({ tx }: WriteContext, { name, sealedUrl, nowMs, firstName }: AddCellArgs): Promise<Cell> => {
    const cells = await listCells(tx, {});
    const found = cells.find((cell) => cell.name === name);
    if (found) return found;
    const columns = ['id', 'name', 'url', 'added_at_ms', 'draining'];
    if (cells.length === 0) {
      await tx.insertMany('cells', columns, [[FIRST_CELL, firstName, '', nowMs, 0]]);
      await tx.send(`update numbers set until = ? where ${IN_RANGE}`, [rangeOf(FIRST_CELL).until]);
    }
    const cellId = Math.max(FIRST_CELL, ...cells.map((cell) => cell.cellId)) + 1;
    await tx.insertMany('cells', columns, [[cellId, name, sealedUrl, nowMs, 0]]);
    await noteChange(tx);
    return { cellId, name, sealedUrl, addedAtMs: nowMs, isDraining: false };
  },
);

/** New projects go elsewhere. */
export const setCellDraining = write(
  { changesAccounts: true },
  async ({ tx }: WriteContext, { cellId, isDraining }: { cellId: CellId; isDraining: boolean }): Promise<void> => {
    await tx.send('update cells set draining = ? where id = ?', [isDraining ? 1 : 0, cellId]);
    await noteChange(tx);
  },
);

/** The cell that this store is; undefined: it has never been told. */
export const readCellId = read(async (queries: Queries): Promise<CellId | undefined> => {
  const [row] = await queries.query<{ next: number }>("select next from numbers where name = 'cell'");
  return row?.next;
});

/** Makes the store, which nobody uses yet, a cell, and answers which one it is: perhaps it was another before. */
export const beginCell = write(async ({ tx }: WriteContext, { cellId }: { cellId: CellId }): Promise<CellId> => {
  const own = await readCellId(tx, {});
  if (own !== undefined) return own;
  const { first, until } = rangeOf(cellId);
  await tx.send(`update numbers set next = ?, until = ? where ${IN_RANGE}`, [first, until]);
  await tx.insertMany('numbers', ['name', 'next'], [['cell', cellId]]);
  return cellId;
});

/** Where a new project lives, and how its row in the directory stands. Default: in the cell with the fewest projects. */
export async function homeOf(queries: Queries, wanted?: CellId): Promise<{ cellId: CellId; placement: number }> {
  const cellId = wanted ?? (await emptiestCell(queries));
  return { cellId, placement: cellId === FIRST_CELL ? PLACEMENT.here : PLACEMENT.elsewhere };
}

/** The cell with the fewest projects, of those that take new ones. */
async function emptiestCell(queries: Queries): Promise<CellId> {
  const [row] = await queries.query<{ id: CellId }>(
    `select id, (select count(*) from projects where cell = cells.id) as projects from cells
     where draining = 0 order by projects, id limit 1`,
  );
  return row?.id ?? FIRST_CELL;
}

/** Lets one project live here, while workers may do it too. */
export async function adoptProject(tx: Transaction, { projectId, name, createdAtMs }: Project): Promise<void> {
  await tx.run(
    `insert into projects (id, name, signing_current, signing_next, created_at_ms) values (?, ?, '', '', ?)
     on conflict (id) do nothing`,
    [projectId, name, createdAtMs],
  );
}

/** Lets projects live here that the directory has put here. Those that are known stay as they are, above all if they have left. */
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
