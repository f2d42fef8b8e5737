/**
 * Checks P1, P2, P3, P8, P11, P13, P14 and P17 for workflows, on many seeds.
 * To repeat a failing seed: `npm run simulate -- --workflows --seed <n>`.
 */
import { expect, test } from 'vitest';
import { playSeeds, zeroCounts } from './seeds.ts';
import { simulateWorkflows } from './workflow-simulate.ts';

const STEPS = 30;

const seeds = playSeeds(simulateWorkflows, { first: 22, count: 3, steps: STEPS });

test('workflows end despite crashes of the server and of endpoints', async () => {
  expect((await seeds.results()).broken).toEqual([]);
});

test('the same seed gives the same events', async () => {
  const [first, second] = [
    await simulateWorkflows({ seed: 7, steps: 10 }),
    await simulateWorkflows({ seed: 7, steps: 10 }),
  ];
  expect(second).toEqual(first);
});

test('the seeds cover all kinds of events', async () => {
  expect(zeroCounts(await seeds.results())).toEqual([]);
});
