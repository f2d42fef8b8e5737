/**
 * Checks the promises P1 to P9, P16 and P17 (docs/architecture.md) while projects move between cells.
 * To repeat a failing seed: `npm run simulate -- --cells 3 --seed <n>`.
 */
import { expect, test } from 'vitest';
import { playSeeds, zeroCounts } from '../seeds.ts';
import { simulate } from '../simulate.ts';
import { simulateWorkflows } from '../workflow-simulate.ts';

const SHARED = { workers: 3, cells: 2 };
const STEPS = 80;

const seeds = playSeeds(simulate, { ...SHARED, first: 7, count: 2, steps: STEPS });

test('workers keep their promises while projects move from cell to cell', async () => {
  expect((await seeds.results()).broken).toEqual([]);
});

test('runs have the results of their programs while their project moves', async () => {
  const { results } = playSeeds(simulateWorkflows, { ...SHARED, first: 12, count: 1, steps: 40 });
  expect((await results()).broken).toEqual([]);
});

test('the same seed gives the same events', async () => {
  const options = { ...SHARED, seed: 15, steps: 20 };
  expect(await simulate(options)).toEqual(await simulate(options));
});

test('the seeds cover all kinds of events', async () => {
  const wanted = [
    'moved',
    'movesKilled',
    'movesRefused',
    'movesCancelled',
    'crashes',
    'timesAway',
    'publishesForOthers',
  ];
  expect(zeroCounts(await seeds.results(), wanted)).toEqual([]);
});
