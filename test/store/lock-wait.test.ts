/** A batch waits for a lock as long as others that work may take, and not as long as one that hangs. */
import { expect, it } from 'vitest';
import { BatchRunner } from '../../src/store/batch.ts';
import type { Driver } from '../../src/store/driver.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { LockWait } from '../../src/store/lock-wait.ts';

function limitAfter(...tookMs: number[]): number {
  const wait = new LockWait();
  for (const each of tookMs) wait.note(each);
  return wait.limitMs;
}

const times = (count: number, tookMs: number) => Array<number>(count).fill(tookMs);

it.each([
  ['before anything is known, as long as at the most', [], 100],
  ['of short batches, no less than a slip of the machine takes', times(50, 1), 25],
  ['of longer ones, as long as some of them', times(50, 15), 60],
  ['of very long ones, no longer than the others can bear', times(50, 500), 100],
  ['one that took long among short ones does not count for much', [...times(50, 2), 50], 32],
])('%s', (_, tookMs, limitMs) => {
  expect(limitAfter(...tookMs)).toBe(limitMs);
});

it('goes by what the batches of this store take', async () => {
  const driver = new SqliteDriver({ path: ':memory:' });
  const waits: (number | undefined)[] = [];
  let elapsedMs = 0;
  const watched: Driver = {
    dialect: driver.dialect,
    transaction: (work, options) => {
      waits.push(options?.lockWaitMs);
      elapsedMs += 12;
      return driver.transaction(work);
    },
    read: (work) => driver.read(work),
    close: () => driver.close(),
  };
  const runner = new BatchRunner(watched, () => elapsedMs);
  for (const _ of times(50, 0)) await runner.run([{ method: 'ping', args: {} }]);
  expect([waits.at(0), waits.at(-1)]).toEqual([100, 48]);
  await driver.close();
});
