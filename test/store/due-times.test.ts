/** Notifications of the other workers on a database: all unclaimed messages that wait, and nothing else. */
import { expect, it } from 'vitest';
import { createStore } from '../../src/store/create.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../src/store/migrations/index.ts';
import { delivered, eachWorld, type OpenStore, PROJECT, retrying, T0 } from './conformance/world.ts';

let told: number[] = [];

const open: OpenStore = async () => {
  told = [];
  const driver = new SqliteDriver({ path: ':memory:' });
  await migrate(driver);
  return createStore(driver, {
    notifications: {
      publishDue: (dueAtMs) => told.push(dueAtMs),
      publishAccountsChange: () => {},
      publishCancelled: () => {},
      close: async () => {},
    },
  });
};

const world = eachWorld(open);

it('notes a message that is due later, and the earliest of several', async () => {
  await world().accept({ state: { kind: 'due', dueAtMs: T0 + 5_000 } });
  await Promise.all([3_000, 2_000].map((delayMs) => world().accept({ state: { kind: 'due', dueAtMs: T0 + delayMs } })));
  expect(told).toEqual([T0 + 5_000, T0 + 2_000]);
});

it('notes a retry and a released claim, although the caller knows them', async () => {
  const { message, claimToken } = await world().acceptClaimed();
  await world().settle(message, claimToken, retrying(T0, T0 + 12_000, 1));
  const other = await world().acceptClaimed();
  await world().store.messages.release({
    claims: [{ key: other.message.key, projectId: PROJECT, claimToken: other.claimToken }],
    nowMs: T0 + 1,
  });
  expect(told).toEqual([T0 + 12_000, T0 + 1]);
});

it('notes nothing of claimed messages, of messages that wait for their lane, or of a claim', async () => {
  const settings = { queueName: 'orders' };
  await world().acceptClaimed({ settings });
  await world().accept({ settings });
  await world().accept({ state: { kind: 'origin', dueAtMs: T0 } });
  await world().claim();
  expect(told).toEqual([]);
});

it('notes messages that a queue releases', async () => {
  const settings = { queueName: 'orders' };
  const { message, claimToken } = await world().acceptClaimed({ settings });
  await world().accept({ settings, notBeforeMs: T0 - 1 });
  await world().settle(message, claimToken, delivered());
  expect(told).toEqual([T0 - 1]);
});
