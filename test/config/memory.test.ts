import { beforeEach, expect, it } from 'vitest';
import { IdleCollector } from '../../src/system/memory.ts';

const MIB = 1024 * 1024;
let held: number;
let live: number;
let busy: number;
let collections: number;
let keeper: IdleCollector;

beforeEach(() => {
  [held, live, busy, collections] = [40 * MIB, 40 * MIB, 0, 0];
  keeper = new IdleCollector({
    bytesUsed: () => held,
    cpuShare: () => busy,
    collect: () => {
      collections += 1;
      held = live;
    },
  });
  keeper.check(); // what the start has left
  keeper.check();
});

it('collects what a start has left, once', () => {
  expect(collections).toBe(1);
});

it('collects once a burst is over, and then leaves an idle thread alone', () => {
  held += 300 * MIB;
  busy = 0.9;
  keeper.check();
  expect(collections).toBe(1);
  busy = 0.01;
  for (let looks = 0; looks < 10; looks += 1) keeper.check();
  expect([collections, held]).toEqual([2, live]);
});

it('collects after a second burst that is smaller than the first', () => {
  for (const burst of [300 * MIB, 40 * MIB]) {
    held += burst;
    keeper.check();
    keeper.check();
  }
  expect([collections, held]).toEqual([3, live]);
});

it('leaves alone what is little', () => {
  held += 31 * MIB;
  keeper.check();
  expect(collections).toBe(1);
});

it('does not try again for what is needed', () => {
  live += 100 * MIB;
  held = live;
  for (let looks = 0; looks < 10; looks += 1) keeper.check();
  expect(collections).toBe(2);
});

it('counts from what the engine has collected by itself', () => {
  live = 10 * MIB;
  held = live;
  keeper.check();
  held += 33 * MIB;
  keeper.check();
  expect(collections).toBe(2);
});
