/** What waits for a claim that takes long? */
import { expect, it } from 'vitest';
import type { ClaimRequest } from '../../src/engine/messages/claims.ts';
import { createStore } from '../../src/store/create.ts';
import type { Driver } from '../../src/store/driver.ts';

const REQUEST: ClaimRequest = {
  worker: 'w1',
  firstToken: 1,
  limit: 10,
  bytesMax: 1_000,
  roomByOrigin: {},
  defaultRoom: 4,
  due: true,
  lanesFirst: false,
  linesToServe: [],
};

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Its transactions end when the test says so. */
class HeldDriver implements Driver {
  readonly dialect: Driver['dialect'];
  readonly begun: (() => void)[] = [];

  constructor(manyWriters: boolean) {
    this.dialect = { manyWriters } as Driver['dialect'];
  }

  transaction<T>(): Promise<T> {
    return new Promise((_, reject) => this.begun.push(() => reject(new Error('the test is over'))));
  }

  read<T>(): Promise<T> {
    return new Promise(() => {});
  }

  async close(): Promise<void> {}
}

it.each([
  { where: 'where transactions go side by side, no other command', manyWriters: true, begun: 2 },
  { where: 'where one goes after the other, all that comes later', manyWriters: false, begun: 1 },
])('$where', async ({ manyWriters, begun }) => {
  const driver = new HeldDriver(manyWriters);
  const { messages } = createStore(driver);
  const claimed = messages.claim(REQUEST, 0);
  await turn();
  const reserved = messages.reserveNumbers(1);
  await turn();
  expect(driver.begun).toHaveLength(begun);
  for (const each of [claimed, reserved]) each.catch(() => {});
});
