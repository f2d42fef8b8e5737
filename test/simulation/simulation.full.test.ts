/** Repeats simulation.test.ts, workflow-simulation.test.ts and workers-simulation.test.ts with other seeds. */
import { expect, test } from 'vitest';
import { playSeeds } from './seeds.ts';
import { simulate } from './simulate.ts';
import { simulateWorkflows } from './workflow-simulate.ts';

test.for([
  ['one process', playSeeds(simulate, { first: 51, count: 12, steps: 120 })],
  ['workflows', playSeeds(simulateWorkflows, { first: 6, count: 8, steps: 30 })],
  ['several workers', playSeeds(simulate, { first: 4, count: 3, steps: 120, workers: 3 })],
  ['workflows among several workers', playSeeds(simulateWorkflows, { first: 1, count: 4, steps: 40, workers: 3 })],
] as const)('all promises are kept by %s', async ([, seeds]) => {
  expect((await seeds.results()).broken).toEqual([]);
});
