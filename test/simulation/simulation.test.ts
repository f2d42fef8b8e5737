/**
 * Checks the promises P1 to P7, P9 and P12 to P16 (docs/architecture.md) on many seeds; simulation.full.test.ts uses other seeds.
 * To run more seeds, or to repeat a failing one: `npm run simulate -- --seed 1 --seeds 1000`.
 */
import { expect, test } from 'vitest';
import { playSeeds, zeroCounts } from './seeds.ts';
import { simulate } from './simulate.ts';

const STEPS = 120;

const seeds = playSeeds(simulate, { first: 47, count: 5, steps: STEPS });

test(`the simulated service keeps its promises through crashes, refusals, slow endpoints and set clocks, seeds ${seeds.name}`, async () => {
  expect((await seeds.results()).broken).toEqual([]);
});

test('the same seed gives the same events, and another seed gives others', async () => {
  const [once, twice, other] = [
    await simulate({ seed: 7, steps: 40 }),
    await simulate({ seed: 7, steps: 40 }),
    await simulate({ seed: 8, steps: 40 }),
  ];
  expect(twice).toEqual(once);
  expect(other.digest).not.toBe(once.digest);
});

test('the seeds cover all kinds of events', async () => {
  expect(zeroCounts(await seeds.results())).toEqual([]);
});
