/** The simulation can fail: each of these bugs is planted, and each is found. */
import { expect, test } from 'vitest';
import { LANE_BUGS } from './lanes-planted-bugs.ts';
import { brokenBy, PLANTED_BUGS } from './planted-bugs.ts';
import { SCHEDULE_BUGS } from './schedule-planted-bugs.ts';
import { simulate } from './simulate.ts';
import { WORKFLOW_BUGS } from './workflow-planted-bugs.ts';
import { simulateWorkflows } from './workflow-simulate.ts';

test.for(Object.entries({ ...PLANTED_BUGS, ...LANE_BUGS, ...SCHEDULE_BUGS }))('catches that %s', async ([, bug]) => {
  expect(await brokenBy(bug, simulate, { steps: 60 })).toContain(bug.promise);
});

test.for(Object.entries(WORKFLOW_BUGS))('catches, among workflows, that %s', async ([, bug]) => {
  expect(await brokenBy(bug, simulateWorkflows, { steps: 30 })).toContain(bug.promise);
});
