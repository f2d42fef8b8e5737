/** P1 to P9, P16 and P17 with several workers on one database. A failing seed: `npm run simulate -- --workers 3 --seed <n>`. */
import { expect, test } from 'vitest';
import type { PlantedBug } from './planted-bugs.ts';
import { simulate } from './simulate.ts';
import { WORKER_BUGS, WORKER_RUN_BUGS } from './workers-planted-bugs.ts';
import { simulateWorkflows } from './workflow-simulate.ts';

const WORKERS = 3;
const STEPS = 120;
const SEEDS = 4;
const RUN_STEPS = 40;
/** All are found by the first few seeds; this many leaves room for a change of the workload. */
const BUG_SEEDS_MAX = 40;

test.for([1, 2])(
  'workers with wrong clocks keep their promises through crashes, stops and lost answers, part %i',
  async (part) => {
    const broken: string[] = [];
    for (let seed = part; seed <= SEEDS; seed += 2) {
      const { violations } = await simulate({ seed, steps: STEPS, workers: WORKERS });
      for (const { promise, text, messageId } of violations) {
        broken.push(`seed ${seed}: ${promise}: ${text} ${messageId ?? ''}`);
      }
    }
    expect(broken).toEqual([]);
  },
);

test('the same seed gives the same events twice', async () => {
  const [first, second] = [
    await simulate({ seed: 3, steps: 60, workers: WORKERS }),
    await simulate({ seed: 3, steps: 60, workers: WORKERS }),
  ];
  expect(second).toEqual(first);
});

test('the seeds meet what they are meant to meet', async () => {
  const sums: Record<string, number> = {};
  for (let seed = 1; seed <= 4; seed += 1) {
    const { counts } = await simulate({ seed, steps: STEPS, workers: WORKERS });
    for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
  }
  const wanted = ['crashes', 'drains', 'freezes', 'hangs', 'lostAnswers', 'dismissals', 'giveBacks', 'fences'];
  for (const name of wanted) expect({ name, met: (sums[name] ?? 0) > 0 }).toEqual({ name, met: true });
});

test('workflows come to what their programs say, whichever workers take part in them', async () => {
  const broken: string[] = [];
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const { violations } = await simulateWorkflows({ seed, steps: RUN_STEPS, workers: WORKERS });
    broken.push(...violations.map(({ promise, text }) => `seed ${seed}: ${promise}: ${text}`));
  }
  expect(broken).toEqual([]);
});

async function expectFound({ promise, sabotage }: PlantedBug, play: typeof simulate, steps: number): Promise<void> {
  const broken: string[] = [];
  for (let seed = 1; seed <= BUG_SEEDS_MAX && !broken.includes(promise); seed += 1) {
    const { violations } = await play({ seed, steps, workers: WORKERS, sabotage: sabotage() });
    broken.push(...violations.map((violation) => violation.promise));
  }
  expect(broken).toContain(promise);
}

test.for(Object.entries(WORKER_BUGS))('catches that %s', ([, bug]) => expectFound(bug, simulate, STEPS));

test.for(Object.entries(WORKER_RUN_BUGS))('catches, among workflows, that %s', ([, bug]) =>
  expectFound(bug, simulateWorkflows, RUN_STEPS),
);
