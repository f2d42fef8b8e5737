/** Checks that one project does not delay another (P9), and that the simulation finds each planted bug. */
import { expect, test } from 'vitest';
import { simulateIsolation } from './isolation.ts';
import { ISOLATION_BUGS, OUTAGE_BUGS } from './isolation-planted-bugs.ts';
import { simulateOutage } from './outage.ts';

test.for([1, 2])('P9: endpoints of one project that hang delay nothing of another (seed %i)', async (seed) => {
  expect(await simulateIsolation(seed)).toEqual([]);
});

test.for(Object.entries(ISOLATION_BUGS))('catches that %s', async ([, sabotage]) => {
  const promises: string[] = [];
  for (let seed = 1; seed <= 5 && !promises.includes('P9'); seed += 1) {
    promises.push(...(await simulateIsolation(seed, sabotage())).map(({ promise }) => promise));
  }
  expect(promises).toContain('P9');
});

test.for([1])('P9: after an outage no project waits for the backlogs of others (seed %i)', async (seed) => {
  expect(await simulateOutage(seed)).toEqual([]);
});

test.for(Object.entries(OUTAGE_BUGS))('catches, after an outage, that %s', async ([, sabotage]) => {
  expect((await simulateOutage(1, sabotage())).map(({ promise }) => promise)).toContain('P9');
});
