/** The simulation can fail: each of these bugs is planted, and each is found. */
import { expect, test } from 'vitest';
import { LANE_BUGS } from './lanes-planted-bugs.ts';
import { PLANTED_BUGS, type PlantedBug } from './planted-bugs.ts';
import { SCHEDULE_BUGS } from './schedule-planted-bugs.ts';
import { simulate } from './simulate.ts';
import { WORKFLOW_BUGS } from './workflow-planted-bugs.ts';
import { simulateWorkflows } from './workflow-simulate.ts';

/** All are found by the first few seeds; this many leaves room for a change of the workload. */
const SEEDS_MAX = 40;

async function expectFound({ promise, sabotage }: PlantedBug, play: typeof simulate, steps: number): Promise<void> {
  const broken: string[] = [];
  for (let seed = 1; seed <= SEEDS_MAX && !broken.includes(promise); seed += 1) {
    const { violations } = await play({ seed, steps, sabotage: sabotage() });
    broken.push(...violations.map((violation) => violation.promise));
  }
  expect(broken).toContain(promise);
}

test.for(Object.entries({ ...PLANTED_BUGS, ...LANE_BUGS, ...SCHEDULE_BUGS }))('catches that %s', ([, bug]) =>
  expectFound(bug, simulate, 150),
);

test.for(Object.entries(WORKFLOW_BUGS))('catches, among workflows, that %s', ([, bug]) =>
  expectFound(bug, simulateWorkflows, 30),
);
