/** Checks that the simulation of cells finds each planted bug. */
import { expect, test } from 'vitest';
import { findBrokenPromises } from '../planted-bugs.ts';
import { simulate } from '../simulate.ts';
import { simulateWorkflows } from '../workflow-simulate.ts';
import { CELL_BUGS, CELL_RUN_BUGS } from './planted-bugs.ts';

test.for(Object.entries(CELL_BUGS))('catches, among cells, that %s', async ([, bug]) => {
  expect(await findBrokenPromises(bug, simulate, { steps: 80, workers: 3, cells: 2 })).toContain(bug.promise);
});

test.for(Object.entries(CELL_RUN_BUGS))('catches, among workflows and cells, that %s', async ([, bug]) => {
  expect(await findBrokenPromises(bug, simulateWorkflows, { steps: 60, workers: 3, cells: 2 })).toContain(bug.promise);
});
