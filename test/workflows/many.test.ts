/** Runs with many steps, sequential and parallel (contract W 8.1, 15). */
import { expect } from 'vitest';
import { LIBRARY } from './support/library.ts';
import { scenario } from './support/scenario.ts';

const IN_A_ROW = 60;
const AT_ONCE = 40;

scenario(`runs ${IN_A_ROW} steps one after another`, async ({ service }) => {
  const path = service.workflow(LIBRARY, '/row', async (context) => {
    let sum = 0;
    for (let step = 1; step <= IN_A_ROW; step += 1) sum += await context.run(`step ${step}`, () => step);
    return sum;
  });
  const run = await path.trigger();
  expect(await run.result()).toBe((IN_A_ROW * (IN_A_ROW + 1)) / 2);
  expect(service.app.calls('/row')).toHaveLength(IN_A_ROW + 1);
  const flat = await run.flat();
  expect(flat[0]).toBe('RUN_STARTED RUN_SUCCESS');
  expect(flat.slice(2)).toEqual(
    Array.from({ length: IN_A_ROW }, (_, index) => `step ${index + 1}: CREATED ACTIVE DELIVERED`),
  );
  expect(await run.groups()).toHaveLength(IN_A_ROW + 1);
});

scenario(`runs ${AT_ONCE} steps at once`, async ({ service }) => {
  const path = service.workflow(LIBRARY, '/fan', async (context) => {
    const steps = Array.from({ length: AT_ONCE }, (_, index) => context.run(`step ${index}`, () => index));
    const results = await Promise.all(steps);
    return context.run('sum', () => results.reduce((sum, result) => sum + result, 0));
  });
  const run = await path.trigger();
  expect(await run.result()).toBe((AT_ONCE * (AT_ONCE - 1)) / 2);
  expect(service.app.calls('/fan')).toHaveLength(2 + 2 * AT_ONCE);
  const [, group, ...rest] = (await run.log()).steps;
  expect([group?.type, group?.steps.length, rest.length]).toEqual(['parallel', AT_ONCE, 1]);
  const states = new Set(group?.steps.map(({ state }) => state));
  expect([...states]).toEqual(['STEP_SUCCESS']);
});
