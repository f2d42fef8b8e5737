/** Opens several databases as the cells of one installation. */
import { sealKeys } from '../../../src/accounts/accounts.ts';
import { FIRST_CELL, type ProjectId } from '../../../src/engine/model.ts';
import type { Driver } from '../../../src/store/driver.ts';
import { SqliteDriver } from '../../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../../src/store/migrations/index.ts';
import { storeOver } from '../database.ts';
import type { Sabotage } from '../world.ts';
import { addressOf, SEALER } from './engine.ts';

/** Opens empty databases as the cells 1, 2, …, and puts one project into each: 1 into the first, and so on. */
export async function openCellDatabases(
  count: number,
  { cell: sabotaged = async () => {} }: Sabotage,
): Promise<Driver[]> {
  const drivers = Array.from({ length: count }, () => new SqliteDriver({ path: ':memory:' }));
  for (const driver of drivers) await migrate(driver);
  const stores = drivers.map((driver) => storeOver(driver));
  const [directory] = stores;
  if (!directory) throw new Error('there is no first cell');
  const signingKeys = sealKeys({ current: 'current', next: 'next' }, SEALER);
  await directory.projects.ensureProject({ name: 'project 1', signingKeys, nowMs: 0 });
  for (const [index, store] of stores.entries()) {
    const cellId = index + FIRST_CELL;
    if (cellId === FIRST_CELL) continue;
    await directory.cells.addCell({
      name: `cell-${cellId}`,
      sealedUrl: addressOf(cellId),
      nowMs: 0,
      firstName: 'cell-1',
    });
    await store.cells.initializeCell({ cellId });
    await sabotaged(drivers[index] as Driver);
    await directory.projects.ensureProject({ name: `project ${cellId}`, signingKeys, nowMs: 0 }); // in the emptiest cell
    const projects = await directory.projects.listProjects();
    await store.cells.adoptProjects({ projects: projects.filter(({ projectId }) => projectId === cellId) });
  }
  return drivers;
}

/** The cell of each project in the directory. */
export async function cellsOf(directory: Driver): Promise<Map<ProjectId, number>> {
  const rows = await directory.read((queries) =>
    queries.query<{ id: ProjectId; cell: number }>('select id, cell from projects order by id'),
  );
  return new Map(rows.map(({ id, cell }) => [id, cell]));
}
