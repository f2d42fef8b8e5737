/** P1 to P7, P9 and P12 to P16, on many seeds. A failing one: `npm run simulate -- --seed <n>`. */
import { describe, expect, test } from 'vitest';
import { simulate } from './simulate.ts';

const SEEDS = 100;
const STEPS = 120;
const SEEDS_A_TEST = 20;

describe('the simulated service keeps its promises through crashes, refusals, slow endpoints and set clocks', () => {
  const firsts = Array.from({ length: SEEDS / SEEDS_A_TEST }, (_, index) => 1 + index * SEEDS_A_TEST);
  test.for(firsts)('from seed %i on', async (first) => {
    const broken: string[] = [];
    for (let seed = first; seed < first + SEEDS_A_TEST; seed += 1) {
      const { violations } = await simulate({ seed, steps: STEPS });
      for (const { promise, text, messageId } of violations) {
        broken.push(`seed ${seed}: ${promise}: ${text} ${messageId ?? ''}`);
      }
    }
    expect(broken).toEqual([]);
  });
});

test('the same seed gives the same events twice, and another seed others', async () => {
  const [first, second, other] = [
    await simulate({ seed: 7, steps: STEPS }),
    await simulate({ seed: 7, steps: STEPS }),
    await simulate({ seed: 8, steps: STEPS }),
  ];
  expect(second).toEqual(first);
  expect(other.digest).not.toBe(first.digest);
});

test('the seeds meet what they are meant to meet', async () => {
  const sums: Record<string, number> = {};
  for (let seed = 1; seed <= 20; seed += 1) {
    const { counts } = await simulate({ seed, steps: STEPS });
    for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
  }
  for (const [name, sum] of Object.entries(sums)) expect({ name, met: sum > 0 }).toEqual({ name, met: true });
});
