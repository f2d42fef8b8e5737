/** Unique numbers, taken in blocks. */

import { expect, test } from 'vitest';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import { Numbers } from '../../src/engine/workers/numbers.ts';
import { fc } from '../support/fast-check.ts';

/** A sequence like that of a store; the test completes each reservation. */
class Sequence {
  readonly messages = this;
  readonly #open: { resolve: (first: number) => void; reject: (error: Error) => void; first: number }[] = [];
  #next = 1;
  reservations = 0;

  reserveNumbers({ count }: { count: number }): Promise<number> {
    this.reservations += 1;
    const first = this.#next;
    this.#next += count;
    return new Promise((resolve, reject) => {
      this.#open.push({ resolve, reject, first });
    });
  }

  answer(): void {
    for (const { resolve, first } of this.#open.splice(0)) resolve(first);
  }

  refuse(): void {
    for (const { reject } of this.#open.splice(0)) reject(new StoreUnavailable('the disk is full'));
  }
}

async function opened(): Promise<{ sequence: Sequence; numbers: Numbers; first: number }> {
  const sequence = new Sequence();
  const numbers = new Numbers(sequence);
  const taking = numbers.take(1);
  sequence.answer();
  return { sequence, numbers, first: await taking };
}

test('callers that wait for the same block share one reservation and get different numbers', async () => {
  const sequence = new Sequence();
  const numbers = new Numbers(sequence);
  const taking = Array.from({ length: 50 }, () => numbers.take(3));
  expect(sequence.reservations).toBe(1);
  sequence.answer();
  const firsts = await Promise.all(taking);
  expect(new Set(firsts).size).toBe(50);
  expect(firsts.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, index) => 1 + index * 3));
});

test('assigning costs no round trip once a block is available', async () => {
  const { sequence, numbers, first } = await opened();
  expect(numbers.take(1)).toBe(first + 1);
  expect(numbers.take(100)).toBe(first + 2);
  expect(numbers.take(1)).toBe(first + 102);
  expect(sequence.reservations).toBe(1);
});

test('the next block is requested before it is needed', async () => {
  const { sequence, numbers } = await opened();
  await numbers.take(12_000);
  expect(sequence.reservations).toBe(2);
  sequence.answer();
  await expect(numbers.take(12_000)).resolves.toBe(20_001);
});

test('more than a block is reserved separately', async () => {
  const { sequence, numbers, first } = await opened();
  const taking = numbers.take(50_000);
  sequence.answer();
  await expect(taking).resolves.toBe(20_001);
  expect(numbers.take(1)).toBe(first + 1);
});

test('a waiting caller gets an error when the store is unavailable, and the next one tries again', async () => {
  const sequence = new Sequence();
  const numbers = new Numbers(sequence);
  const [first, second] = [numbers.take(1), numbers.take(1)];
  sequence.refuse();
  await expect(first).rejects.toThrow(StoreUnavailable);
  await expect(second).rejects.toThrow(StoreUnavailable);
  const third = numbers.take(1);
  sequence.answer();
  await expect(third).resolves.toBe(20_001);
});

test('a block that was requested ahead and refused is requested again, without an error for callers', async () => {
  const { sequence, numbers } = await opened();
  await numbers.take(12_000);
  sequence.refuse();
  await Promise.resolve();
  expect(numbers.take(100)).toBeTypeOf('number');
  expect(sequence.reservations).toBe(3);
});

test('no number is assigned twice, whatever is reserved and refused in whatever order', async () => {
  const counts = fc.array(fc.oneof(fc.integer({ min: 1, max: 25_000 }), fc.constantFrom('answer', 'refuse')));
  await fc.assert(
    fc.asyncProperty(counts, async (todo) => {
      const sequence = new Sequence();
      const numbers = new Numbers(sequence);
      const given: { first: number; count: number }[] = [];
      const waiting: Promise<void>[] = [];
      for (const each of todo) {
        if (each === 'answer') sequence.answer();
        else if (each === 'refuse') sequence.refuse();
        else {
          const note = (first: number) => void given.push({ first, count: Number(each) });
          waiting.push(Promise.resolve(numbers.take(Number(each))).then(note, () => {}));
        }
        await Promise.resolve();
      }
      for (let round = 0; round < todo.length; round += 1) {
        sequence.answer();
        for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
      }
      await Promise.all(waiting);
      given.sort((a, b) => a.first - b.first);
      for (const [index, { first }] of given.entries()) {
        const before = given[index - 1];
        if (before) expect(first).toBeGreaterThanOrEqual(before.first + before.count);
      }
    }),
    { numRuns: 200 },
  );
});

test('a number that must exceed all earlier ones comes from the store if others take numbers too', async () => {
  const sequence = new Sequence();
  const [mine, theirs] = [new Numbers(sequence, { isShared: true }), new Numbers(sequence, { isShared: true })];
  const block = mine.take(1);
  const first = theirs.takeLatest();
  const second = mine.takeLatest();
  sequence.answer();
  expect(await second).toBeGreaterThan(await first);
  expect(await second).toBeGreaterThan(await block);
  const { sequence: own, numbers } = await opened();
  const { reservations } = own;
  expect(numbers.takeLatest()).toBe(2);
  expect(own.reservations).toBe(reservations);
});
