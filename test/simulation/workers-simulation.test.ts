/**
 * Checks the promises P1 to P9, P16 and P17 (docs/architecture.md) with several workers on one database.
 * To repeat a failing seed: `npm run simulate -- --workers 3 --seed <n>`.
 */
import { expect, test } from 'vitest';
import { playSeeds, zeroCounts } from './seeds.ts';
import { simulate } from './simulate.ts';

const WORKERS = 3;
const STEPS = 120;
const SEEDS = 2;

const seeds = playSeeds(simulate, { first: 2, count: SEEDS, steps: STEPS, workers: WORKERS });

test('workers with wrong clocks keep their promises through crashes, stops and lost answers', async () => {
  expect((await seeds.results()).broken).toEqual([]);
});

test('the same seed gives the same events', async () => {
  const [first, second] = [
    await simulate({ seed: 3, steps: 30, workers: WORKERS }),
    await simulate({ seed: 3, steps: 30, workers: WORKERS }),
  ];
  expect(second).toEqual(first);
});

test('the seeds cover all kinds of events', async () => {
  const wanted = ['crashes', 'drains', 'freezes', 'hangs', 'lostAnswers', 'dismissals', 'giveBacks', 'fences'];
  expect(zeroCounts(await seeds.results(), wanted)).toEqual([]);
});
