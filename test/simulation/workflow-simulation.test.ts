/** P1, P2, P3, P8, P11, P13, P14 and P17 for workflows, on many seeds. A failing one: `npm run simulate -- --workflows --seed <n>`. */
import { expect, test } from 'vitest';
import { simulateWorkflows } from './workflow-simulate.ts';

const STEPS = 30;
const SEEDS_A_TEST = 12;
const FIRSTS = [1, 13];

test.for(FIRSTS)('workflows come to their ends through crashes of both sides, from seed %i on', async (first) => {
  const broken: string[] = [];
  for (let seed = first; seed < first + SEEDS_A_TEST; seed += 1) {
    const { violations } = await simulateWorkflows({ seed, steps: STEPS });
    for (const { promise, text, messageId } of violations) {
      broken.push(`seed ${seed}: ${promise}: ${text} ${messageId ?? ''}`);
    }
  }
  expect(broken).toEqual([]);
});

test('the same seed gives the same events twice', async () => {
  const [first, second] = [
    await simulateWorkflows({ seed: 7, steps: STEPS }),
    await simulateWorkflows({ seed: 7, steps: STEPS }),
  ];
  expect(second).toEqual(first);
});

test('the seeds meet what they are meant to meet', async () => {
  const sums: Record<string, number> = {};
  for (let seed = 1; seed <= 6; seed += 1) {
    const { counts } = await simulateWorkflows({ seed, steps: STEPS });
    for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
  }
  for (const [name, sum] of Object.entries(sums)) expect({ name, met: sum > 0 }).toEqual({ name, met: true });
});
