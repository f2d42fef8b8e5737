/** Messages that the limit of a project held back, after a start with another limit. */

import { afterEach, beforeEach, expect, it } from 'vitest';
import { createStore } from '../../src/store/create.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../src/store/migrations/index.ts';
import type { Store } from '../../src/store/store.ts';
import { PROJECT, T0, World } from './conformance/world.ts';

const IN_LANE = { settings: { flowControl: { key: 'k', parallelism: 10, periodS: 1 } } };

let driver: SqliteDriver;
beforeEach(async () => {
  driver = new SqliteDriver({ path: ':memory:' });
  await migrate(driver);
});
afterEach(() => driver.close());

/** The store of the next start, on the same database. */
const startWith = (parallelismMax: number): Store =>
  createStore(driver, { limits: { queuesMax: 0, parallelismMax, messagesPerDayMax: 0, journalBytesMax: 0 } });

/**
 * Four messages, of which one may start; the last has a flow-control key. Returns the sorted keys of the waiting ones.
 */
async function hold(world: World): Promise<number[]> {
  await world.acceptClaimed();
  const held = [await world.acceptClaimed(), await world.acceptClaimed(), await world.acceptClaimed(IN_LANE)];
  expect((await world.claim()).claimed).toEqual([]);
  return held.map(({ message }) => message.key).sort((a, b) => a - b);
}

const keysOf = (claimed: { message: { key: number } }[]): number[] =>
  claimed.map(({ message }) => message.key).sort((a, b) => a - b);

it('all of them start when there is no limit any more', async () => {
  const held = await hold(await World.open(async () => startWith(1)));
  const next = await World.open(async () => startWith(0));
  expect(await next.store.messages.releaseAll({ nowMs: T0 })).toBe(1);
  expect(keysOf((await next.claim()).claimed)).toEqual(expect.arrayContaining(held));
});

it('all of them start when starting and stopping workers find no limit any more', async () => {
  const held = await hold(await World.open(async () => startWith(1)));
  const next = await World.open(async () => startWith(0));
  expect(await next.store.messages.releaseUnlimited({ nowMs: T0 })).toBe(3);
  expect(await next.store.messages.releaseUnlimited({ nowMs: T0 })).toBe(0);
  expect(keysOf((await next.claim()).claimed)).toEqual(held);
});

it('none of them starts by itself while there is a limit', async () => {
  await hold(await World.open(async () => startWith(1)));
  const next = await World.open(async () => startWith(3));
  expect(await next.store.messages.releaseUnlimited({ nowMs: T0 })).toBe(0);
});

it('as many more start as a higher limit has capacity for', async () => {
  await hold(await World.open(async () => startWith(1)));
  const next = await World.open(async () => startWith(3));
  await next.store.messages.releaseAll({ nowMs: T0 });
  let claimed = 0;
  for (let round = 0; round < 3; round += 1) claimed += (await next.claim()).claimed.length;
  expect([claimed, await next.store.keys.countInFlight({ projectId: PROJECT })]).toEqual([3, 3]);
});
