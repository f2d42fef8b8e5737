/** P1 to P7, P9 and P12 to P16, on many seeds; more by `npm run simulate -- --seed 1 --seeds 1000`, which also repeats one that fails. */
import { describe, expect, test } from 'vitest';
import { playSeeds, unmet } from './seeds.ts';
import { simulate } from './simulate.ts';

const STEPS = 120;
const SEEDS_A_TEST = 20;

const first = playSeeds(simulate, { first: 1, count: SEEDS_A_TEST, steps: STEPS });
const second = playSeeds(simulate, { first: 1 + SEEDS_A_TEST, count: SEEDS_A_TEST, steps: STEPS });

describe('the simulated service keeps its promises through crashes, refusals, slow endpoints and set clocks', () => {
  test.for([first, second].map((seeds) => [seeds.name, seeds] as const))('seeds %s', async ([, seeds]) => {
    expect((await seeds.played()).broken).toEqual([]);
  });
});

test('the same seed gives the same events twice, and another seed others', async () => {
  const [once, twice, other] = [
    await simulate({ seed: 7, steps: STEPS }),
    await simulate({ seed: 7, steps: STEPS }),
    await simulate({ seed: 8, steps: STEPS }),
  ];
  expect(twice).toEqual(once);
  expect(other.digest).not.toBe(once.digest);
});

test('the seeds meet what they are meant to meet', async () => {
  expect(unmet(await first.played())).toEqual([]);
});
