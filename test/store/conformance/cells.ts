import { expect, it } from 'vitest';
import { eachWorld, type OpenStore, PROJECT, T0 } from './world.ts';

const KEYS = { current: 'sealed current', next: 'sealed next' };

export function cellsConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const add = (name: string) =>
    world().store.cells.addCell({ name, sealedUrl: `sealed ${name}`, nowMs: T0, firstName: 'first' });
  const make = async (name: string) => {
    const { projectId } = await world().store.projects.ensureProject({ name, signingKeys: KEYS, nowMs: T0 });
    const { projects } = await world().store.projects.readAccounts();
    return projects.find((project) => project.projectId === projectId)?.cellId;
  };

  it('lists no cells as long as there is only one, where all projects live', async () => {
    expect(await world().store.cells.listCells()).toEqual([]);
    expect(await make('shop')).toBe(1);
  });

  it('lists the first cell together with the second one', async () => {
    const { version } = await world().store.projects.readAccounts();
    const second = { cellId: 2, name: 'second', sealedUrl: 'sealed second', addedAtMs: T0, isDraining: false };
    expect(await add('second')).toEqual(second);
    const first = { cellId: 1, name: 'first', sealedUrl: '', addedAtMs: T0, isDraining: false };
    const accounts = await world().store.projects.readAccounts();
    expect(accounts.cells).toEqual([first, second]);
    expect(accounts.version).toBeGreaterThan(version);
  });

  it('returns a cell that it already has', async () => {
    const second = await add('second');
    expect(await add('second')).toEqual(second);
    expect(await add('third')).toMatchObject({ cellId: 3 });
    expect((await world().store.cells.listCells()).map(({ name }) => name)).toEqual(['first', 'second', 'third']);
  });

  it('places a new project in the cell with the fewest projects', async () => {
    await make('a');
    await add('second');
    await add('third');
    expect([await make('b'), await make('c'), await make('d'), await make('b')]).toEqual([2, 3, 1, 2]);
  });

  it('places a new project in a given cell', async () => {
    await add('second');
    const project = { name: 'a', signingKeys: KEYS, nowMs: T0, cellId: 1 };
    await world().store.projects.ensureProject(project);
    await world().store.projects.ensureProject({ ...project, cellId: 2 });
    expect(await make('a')).toBe(1);
  });

  it('places no new project in a draining cell', async () => {
    await add('second');
    await world().store.cells.setCellDraining({ cellId: 2, isDraining: true });
    expect(await make('a')).toBe(1);
    await world().store.cells.setCellDraining({ cellId: 2, isDraining: false });
    expect(await make('b')).toBe(2);
  });

  it('adopts projects that it does not have', async () => {
    const projects = [PROJECT + 10, PROJECT + 11].map((projectId) => ({
      projectId,
      name: `p${projectId}`,
      createdAtMs: T0,
    }));
    await world().store.cells.adoptProjects({ projects: projects.slice(0, 1) });
    await world().store.cells.adoptProjects({ projects });
    expect(await world().store.projects.listProjects()).toEqual(expect.arrayContaining(projects));
  });
}
