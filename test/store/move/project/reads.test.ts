/** Reads of a project come from the cell in which it lives: any other has at most a part of it. */
import { afterEach, expect, it } from 'vitest';
import { moveProject } from '../../../../src/cells/move/move-project.ts';
import type { Driver } from '../../../../src/store/driver.ts';
import { SqliteDriver } from '../../../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../../../src/store/migrations/index.ts';
import { type CellHere, there, twoCells, whereabouts } from './cells-world.ts';

const opened: Driver[] = [];
afterEach(async () => {
  for (const driver of opened.splice(0)) await driver.close();
});

async function cellsHere() {
  const open = async () => {
    const driver = new SqliteDriver({ path: ':memory:' });
    opened.push(driver);
    await migrate(driver);
    return driver;
  };
  return twoCells([await open(), await open()]);
}

function readLogs({ store }: CellHere) {
  return store.logs.listLogs({ projectId: 1, filter: {}, page: { count: 10, order: 'latestFirst' } });
}

const GONE = { name: 'ProjectAway', isGone: true };

it('is read from the former cell until the switch, and from the new one from then on', async () => {
  const cells = await cellsHere();
  const { first, second } = cells;
  const told: string[] = [];
  const look = async (step: string) => {
    const results = await Promise.all(
      [first, second].map((cell) =>
        readLogs(cell).then(
          () => true,
          () => false,
        ),
      ),
    );
    told.push(`${step}: ${results.map((isTold) => (isTold ? 'told' : 'refused')).join(', ')}`);
  };
  const { directory } = there(cells);
  await moveProject(
    there(cells, {
      directory: {
        ...directory,
        switchMove: async (args) => {
          await look('in the pause');
          return directory.switchMove(args);
        },
      },
    }),
  );
  await look('in the end');
  expect(told).toEqual(['in the pause: told, refused', 'in the end: refused, told']);
  await expect(readLogs(first)).rejects.toMatchObject(GONE);
});

it('is never read from both: the former cell refuses before the new one serves it', async () => {
  const cells = await cellsHere();
  const { target } = there(cells);
  let whereItWas: unknown;
  const watched: Driver = Object.assign(Object.create(target), {
    dialect: target.dialect,
    read: target.read.bind(target),
    transaction: async (...args: Parameters<Driver['transaction']>) => {
      const result = await target.transaction(...args);
      const [cell, inFirst, inSecond] = await whereabouts(cells);
      if (inSecond === 'here') whereItWas ??= [cell, inFirst];
      return result;
    },
  });
  await moveProject(there(cells, { target: watched }));
  expect(whereItWas).toEqual([2, 'gone']);
});

it('is read from the directory wherever the project lives', async () => {
  const { first } = await cellsHere();
  expect(await first.store.projects.signingKeys({ projectId: 3 })).toEqual({ current: 'c', next: 'n' });
  expect(await first.store.moves.findMove({ projectId: 3 })).toBeUndefined();
  expect(await first.store.projects.listTokensOf({ projectId: 3 })).toEqual([]);
});
