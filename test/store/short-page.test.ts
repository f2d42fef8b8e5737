/**
 * A page of unfinished messages examines a bounded part of the table, however many other messages come before the
 * matching ones.
 */
import { expect, it } from 'vitest';
import { createStore } from '../../src/store/create.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../src/store/migrations/index.ts';
import { OTHER_PROJECT, PROJECT, T0, World } from './conformance/world.ts';

it('is empty and has a cursor when others fill that part, and the next one continues after them', async () => {
  const driver = new SqliteDriver({ path: ':memory:' });
  await migrate(driver);
  const world = await World.open(async () => createStore(driver));
  const { id } = await world.accept();
  const others = Array.from({ length: 11_000 }, () => world.message({ projectId: OTHER_PROJECT }));
  await world.save(others);
  const list = (page: { cursor?: string }) =>
    world.store.messages.listUnfinished({ projectId: PROJECT, filter: {}, page: { count: 10, ...page }, nowMs: T0 });
  const first = await list({});
  expect([first.items.length, first.cursor]).toEqual([0, expect.any(String)]);
  const second = await list({ cursor: first.cursor ?? '' });
  expect(second.items.map(({ message }) => message.id)).toEqual([id]);
  expect(second.cursor).toBeUndefined();
  const backlog = await world.store.backlog.readBacklog({ projectId: PROJECT, nowMs: T0 });
  expect(backlog.waiting).toEqual({ count: 0, isAtLeast: true });
  await world.store.close();
});
