/** Commands and claims that wait for a slow claim. */
import { expect, it } from 'vitest';
import type { ClaimRequest } from '../../src/engine/dispatch/claims.ts';
import { createStore } from '../../src/store/create.ts';
import type { Driver } from '../../src/store/driver.ts';

const REQUEST: ClaimRequest = {
  worker: 'w1',
  firstToken: 1,
  limit: 10,
  bytesMax: 1_000,
  capacityByOrigin: {},
  defaultCapacity: 4,
  due: true,
  lanesFirst: false,
  backlogsToServe: [],
};

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A driver whose transactions never end. */
function hanging(manyWriters: boolean): { driver: Driver; begun: () => number } {
  let begun = 0;
  const driver: Driver = {
    dialect: { manyWriters } as Driver['dialect'],
    transaction: () => {
      begun += 1;
      return new Promise(() => {});
    },
    read: () => new Promise(() => {}),
    close: async () => {},
  };
  return { driver, begun: () => begun };
}

it.each([
  { where: 'where transactions go side by side, no other command', manyWriters: true, begun: 2 },
  { where: 'where one goes after the other, all that comes later', manyWriters: false, begun: 1 },
])('$where', async ({ manyWriters, begun }) => {
  const hung = hanging(manyWriters);
  const { messages } = createStore(hung.driver);
  void messages.claim({ request: REQUEST, nowMs: 0 });
  await turn();
  void messages.reserveNumbers({ count: 1 });
  await turn();
  expect(hung.begun()).toBe(begun);
});
