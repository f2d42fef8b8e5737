/** The next entries of a queue, and the shares of projects. */
import { beforeEach, describe, expect, test } from 'vitest';
import { FairQueue, Fifo } from '../../src/engine/admission/fair-queue.ts';

test('a queue returns its first entries until their cost fills the capacity, and what is left', () => {
  const line = new Fifo<string>();
  for (const [entry, cost] of [
    ['a', 3],
    ['b', 2],
    ['c', 4],
  ] as const)
    line.push(entry, cost);
  expect([line.length, line.cost]).toEqual([3, 9]);
  const batch: string[] = [];
  expect(line.takeInto(batch, 3)).toBe(3);
  expect([batch, line.length, line.cost]).toEqual([['a'], 2, 6]);
  expect(line.takeInto(batch, 3)).toBe(6);
  expect([batch, line.length, line.cost]).toEqual([['a', 'b', 'c'], 0, 0]);
  expect(line.takeInto(batch, 3)).toBe(0);
});

describe('projects', () => {
  let queue: FairQueue<number>;
  beforeEach(() => {
    queue = new FairQueue();
  });

  function push(projectId: number, count: number, cost = 1): void {
    for (let nth = 0; nth < count; nth += 1) queue.push(projectId, projectId, cost);
  }

  /** The entries of one batch, as series of one project: `<project> x <count>`. */
  function take(room: number): string[] {
    const batch: number[] = [0];
    const before = queue.cost;
    const cost = queue.takeInto(batch, room);
    expect(before - cost).toBe(queue.cost);
    const runs: { projectId: number; count: number }[] = [];
    for (const projectId of batch.slice(1)) {
      const last = runs.at(-1);
      if (last?.projectId === projectId) last.count += 1;
      else runs.push({ projectId, count: 1 });
    }
    return runs.map(({ projectId, count }) => `${projectId} x ${count}`);
  }

  test('are served in rotation, whichever has more', () => {
    push(1, 100);
    push(2, 20);
    expect([queue.length, queue.cost]).toEqual([120, 120]);
    expect(take(34)).toEqual(['1 x 8', '2 x 8', '1 x 8', '2 x 8', '1 x 2']);
    expect([queue.length, queue.cost]).toEqual([86, 86]);
    expect(take(100)).toEqual(['1 x 6', '2 x 4', '1 x 76']);
    expect([queue.length, queue.cost, take(100)]).toEqual([0, 0, []]);
  });

  test('continue their rotation in the next batch when one is full', () => {
    push(1, 20);
    push(2, 20);
    expect([take(5), take(6), take(5), take(3)]).toEqual([['1 x 5'], ['1 x 3', '2 x 3'], ['2 x 5'], ['1 x 3']]);
  });

  test('wait after a large command until the others had as much, even if it was their only one', () => {
    for (const others of [3, 0]) {
      queue = new FairQueue();
      push(1, 1, 30);
      push(1, others);
      push(2, 1);
      expect(take(30)).toEqual(['1 x 1']);
      if (others === 0) push(1, 3);
      push(2, 40);
      expect(take(100)).toEqual(['2 x 24', '1 x 2', '2 x 8', '1 x 1', '2 x 9']);
    }
  });

  test('owe the cost of a large command although no other project was there to use as much', () => {
    push(1, 1, 30);
    expect(take(100)).toEqual(['1 x 1']);
    push(1, 4);
    push(2, 30);
    expect(take(12)).toEqual(['2 x 12']);
  });

  test('save up nothing while they have little', () => {
    for (let nth = 0; nth < 5; nth += 1) {
      push(1, 1);
      expect(take(10)).toEqual(['1 x 1']);
    }
    push(1, 20);
    push(2, 20);
    expect(take(16)).toEqual(['1 x 8', '2 x 8']);
  });
});
