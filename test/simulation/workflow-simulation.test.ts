/** P1, P2, P3, P8, P11, P13, P14 and P17 for workflows, on many seeds. A failing one: `npm run simulate -- --workflows --seed <n>`. */
import { expect, test } from 'vitest';
import { playSeeds, zeroCounts } from './seeds.ts';
import { simulateWorkflows } from './workflow-simulate.ts';

const STEPS = 30;

const seeds = playSeeds(simulateWorkflows, { first: 22, count: 3, steps: STEPS });

test('workflows come to their ends through crashes of both sides', async () => {
  expect((await seeds.results()).broken).toEqual([]);
});

test('the same seed gives the same events twice', async () => {
  const [first, second] = [
    await simulateWorkflows({ seed: 7, steps: 10 }),
    await simulateWorkflows({ seed: 7, steps: 10 }),
  ];
  expect(second).toEqual(first);
});

test('the seeds meet what they are meant to meet', async () => {
  expect(zeroCounts(await seeds.results())).toEqual([]);
});
