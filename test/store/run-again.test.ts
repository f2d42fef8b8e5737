/**
 * A batch that is rolled back runs again without its former decisions, because another worker may have committed first.
 */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createStore } from '../../src/store/create.ts';
import type { Driver, Transaction } from '../../src/store/driver.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../src/store/migrations/index.ts';
import { delivered, settlement, T0, World } from './conformance/world.ts';

const IN_QUEUE = { settings: { queueName: 'line' } };

let driver: SqliteDriver;
/** The commands of another worker. */
let other: World;
/** Its first batch has no numbers for its log entries: it is rolled back, and `meanwhile` commits first. */
let world: World;
let meanwhile: (() => Promise<unknown>) | undefined;

beforeEach(async () => {
  driver = new SqliteDriver({ path: ':memory:' });
  await migrate(driver);
  meanwhile = undefined;
  other = await World.open(async () => createStore(workers));
  world = await World.open(async () => createStore(losing));
});
afterEach(() => driver.close());

/** One database with several writers. */
const workers: Driver = {
  get dialect() {
    return { ...driver.dialect, manyWriters: true };
  },
  transaction: (work) => driver.transaction(work),
  read: (work) => driver.read(work),
  close: () => driver.close(),
};

/** Another worker commits after the first transaction that is rolled back. */
const losing: Driver = {
  get dialect() {
    return workers.dialect;
  },
  async transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    try {
      return await driver.transaction(work);
    } catch (error) {
      await meanwhile?.();
      meanwhile = undefined;
      throw error;
    }
  },
  read: workers.read,
  close: workers.close,
};

const settle = (by: World, { message, claimToken }: Awaited<ReturnType<World['acceptClaimed']>>) =>
  by.store.messages.settle({ settlement: settlement(message, claimToken, delivered()), nowMs: T0 });

it('a message that its queue held back starts when the queue is free by then', async () => {
  const first = await other.acceptClaimed(IN_QUEUE);
  meanwhile = () => settle(other, first);
  const second = await world.acceptClaimed(IN_QUEUE);
  expect(await settle(world, second)).toMatchObject({ kind: 'saved' });
  expect(await world.statesOf(second.message)).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
});

it('a message with a permit of its queue waits for it when another has the permit by then', async () => {
  let first: Awaited<ReturnType<World['acceptClaimed']>> | undefined;
  meanwhile = async () => {
    first = await other.acceptClaimed(IN_QUEUE);
  };
  const { message } = await world.acceptClaimed(IN_QUEUE);
  expect((await world.claim()).claimed).toEqual([]);
  if (first) await settle(other, first);
  expect((await world.claim()).claimed).toMatchObject([{ message: { key: message.key } }]);
});
