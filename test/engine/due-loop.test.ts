/** When a loop polls for due work, and when it leaves the store idle. */
import { beforeEach, expect, test } from 'vitest';
import { DueLoop } from '../../src/engine/loops/due-loop.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { NOW_MS } from './fixtures.ts';

let clock: SimulatedClock;
let warnings: string[];
/** The results of chunks in order, as milliseconds from the start; then nothing is due. */
let answers: ('more' | number | Promise<number> | StoreUnavailable)[];
/** The starts of chunks, in milliseconds from the start. */
let pieces: number[];
let loop: DueLoop;

beforeEach(() => {
  clock = new SimulatedClock(NOW_MS);
  warnings = [];
  pieces = [];
  const quiet = () => {};
  const log = { debug: quiet, info: quiet, error: quiet, warn: (event: string) => warnings.push(event) };
  loop = new DueLoop({ clock, log }, 'look_failed', async () => {
    pieces.push(clock.elapsedMs);
    const answer = await (answers.shift() ?? Infinity);
    if (answer instanceof StoreUnavailable) throw answer;
    return answer === 'more' ? answer : NOW_MS + answer;
  });
});

test('it does due work chunk by chunk, and starts again when the next is due', async () => {
  answers = ['more', 'more', 5_000];
  loop.wake();
  await clock.advanceBy(4_999);
  expect(pieces).toEqual([0, 0, 0]);
  await clock.advanceBy(60_000);
  expect(pieces).toEqual([0, 0, 0, 5_000]);
});

test('it starts earlier when it is notified of an earlier due time, and no later for a later one', async () => {
  answers = [5_000];
  loop.wake();
  await clock.settled();
  for (const atMs of [1_000, 8_000]) loop.noteNext(NOW_MS + atMs);
  await clock.advanceBy(1_000);
  expect(pieces).toEqual([0, 1_000]);
});

test('it starts at the earliest time of which it is notified during a chunk', async () => {
  const piece = Promise.withResolvers<number>();
  answers = [piece.promise];
  loop.wake();
  for (const atMs of [3_000, 1_000, 2_000]) loop.noteNext(NOW_MS + atMs);
  piece.resolve(5_000);
  await clock.advanceBy(1_000);
  expect(pieces).toEqual([0, 1_000]);
});

test('it does one chunk at a time, however often it is woken', async () => {
  const piece = Promise.withResolvers<number>();
  answers = [piece.promise];
  for (let nth = 0; nth < 3; nth += 1) loop.wake();
  await clock.settled();
  expect(pieces).toEqual([0]);
  piece.resolve(Infinity);
  await clock.advanceBy(60_000);
  expect(pieces).toEqual([0]);
});

test('it logs that the store has failed, and polls again a second later', async () => {
  answers = [new StoreUnavailable('the disk is full'), 'more'];
  loop.wake();
  await clock.advanceBy(999);
  expect([pieces, warnings]).toEqual([[0], ['look_failed']]);
  await clock.advanceBy(1);
  expect(pieces).toEqual([0, 1_000, 1_000]);
});

test.each<[string, number | 'fails']>([
  ['is saved', 0],
  ['fails', 'fails'],
])('it stops when the current chunk %s, and nothing wakes it any more', async (_how, answer) => {
  const piece = Promise.withResolvers<number>();
  answers = [piece.promise];
  loop.wake();
  let hasStopped = false;
  const stopped = loop.stop().then(() => {
    hasStopped = true;
  });
  await clock.settled();
  expect(hasStopped).toBe(false);
  if (answer === 'fails') piece.reject(new StoreUnavailable('the disk is full'));
  else piece.resolve(answer);
  await stopped;
  loop.wake();
  expect(clock.nextTimerAtMs).toBeUndefined();
  await clock.advanceBy(60_000);
  expect(pieces).toEqual([0]);
});
