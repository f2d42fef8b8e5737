/** The errors after which the engine must check whether its command was saved. */
import { expect, it } from 'vitest';
import { CommitUnknown, StoreUnavailable } from '../../src/engine/store-errors.ts';
import { createStore } from '../../src/store/create.ts';
import type { Driver } from '../../src/store/driver.ts';

/** Refuses everything with `error`. */
function refusing(error: Error): Driver {
  return {
    dialect: { manyWriters: true } as Driver['dialect'],
    transaction: () => Promise.reject(error),
    read: () => Promise.reject(error),
    close: async () => {},
  };
}

it.each([
  { error: new StoreUnavailable('the server is away'), doubts: 0 },
  { error: new CommitUnknown('the response was lost'), doubts: 1 },
])('has $doubts doubts when $error.message', async ({ error, doubts }) => {
  const store = createStore(refusing(error));
  let told = 0;
  store.events.onCommitUnknown = () => {
    told += 1;
  };
  await expect(store.messages.reserveNumbers({ count: 1 })).rejects.toThrow(error);
  expect(told).toBe(doubts);
  await store.close();
});
