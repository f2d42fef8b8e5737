/** The range of numbers of each cell. These cases use their own databases, because they change the next numbers. */
import { describe, expect, it } from 'vitest';
import { openPostgresStore } from '../../src/store/drivers/postgres/open.ts';
import { openInlineSqliteStore } from '../../src/store/drivers/sqlite/open.ts';
import { systemClock } from '../../src/system/system.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { type OpenStore, World } from './conformance/world.ts';

const SPAN = 2 ** 43;

const onFatal = (error: Error) => {
  throw error;
};

const OPEN: [name: string, open: OpenStore][] = [
  ['SQLite', async () => openInlineSqliteStore({ path: ':memory:', onFatal })],
  [
    'PostgreSQL',
    async () =>
      openPostgresStore({ url: await freshDatabase(), listenUrl: '', clock: systemClock, sender: 'one', onFatal }),
  ],
];

describe.each(OPEN)('a cell on %s', (_, open) => {
  it('takes its numbers from the range of its cell', async () => {
    const world = await World.open(open);
    expect(await world.store.cells.readCellId()).toBeUndefined();
    expect(await world.store.cells.initializeCell({ cellId: 3 })).toBe(3);
    const first = await world.store.messages.reserveNumbers({ count: 10 });
    expect(first).toBeGreaterThan(2 * SPAN);
    expect(first).toBeLessThan(3 * SPAN);
    expect(await world.store.cells.readCellId()).toBe(3);
    await world.store.close();
  });

  it('stays the same cell', async () => {
    const world = await World.open(open);
    await world.store.cells.initializeCell({ cellId: 2 });
    const first = await world.store.messages.reserveNumbers({ count: 10 });
    expect(await world.store.cells.initializeCell({ cellId: 2 })).toBe(2);
    expect(await world.store.cells.initializeCell({ cellId: 3 })).toBe(2);
    expect(await world.store.messages.reserveNumbers({ count: 1 })).toBe(first + 10);
    await world.store.close();
  });

  it('assigns no number beyond the range of its cell', async () => {
    const world = await World.open(open);
    await world.store.cells.initializeCell({ cellId: 2 });
    const first = await world.store.messages.reserveNumbers({ count: 1 });
    await world.store.messages.reserveNumbers({ count: 2 * SPAN - first - 1 });
    await expect(world.store.messages.reserveNumbers({ count: 1 })).rejects.toThrow('used up its numbers');
    await world.store.close();
  });
});
