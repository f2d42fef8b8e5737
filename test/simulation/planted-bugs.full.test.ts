/** Checks that the simulation finds each planted bug. */
import { expect, test } from 'vitest';
import { LANE_BUGS } from './lanes-planted-bugs.ts';
import { findBrokenPromises, PLANTED_BUGS } from './planted-bugs.ts';
import { SCHEDULE_BUGS } from './schedule-planted-bugs.ts';
import { simulate } from './simulate.ts';
import { WORKER_BUGS, WORKER_RUN_BUGS } from './workers-planted-bugs.ts';
import { WORKFLOW_BUGS } from './workflow-planted-bugs.ts';
import { simulateWorkflows } from './workflow-simulate.ts';

test.for(Object.entries({ ...PLANTED_BUGS, ...LANE_BUGS, ...SCHEDULE_BUGS }))('catches that %s', async ([, bug]) => {
  expect(await findBrokenPromises(bug, simulate, { steps: 60 })).toContain(bug.promise);
});

test.for(Object.entries(WORKFLOW_BUGS))('catches, among workflows, that %s', async ([, bug]) => {
  expect(await findBrokenPromises(bug, simulateWorkflows, { steps: 30 })).toContain(bug.promise);
});

test.for(Object.entries(WORKER_BUGS))('catches, among several workers, that %s', async ([, bug]) => {
  expect(await findBrokenPromises(bug, simulate, { steps: 120, workers: 3 })).toContain(bug.promise);
});

test.for(Object.entries(WORKER_RUN_BUGS))('catches, among workflows and several workers, that %s', async ([, bug]) => {
  expect(await findBrokenPromises(bug, simulateWorkflows, { steps: 40, workers: 3 })).toContain(bug.promise);
});
