/** The number of steps of runs that execute at a time (contract W 16.1). */
import { describe, expect } from 'vitest';
import { LIBRARIES, LIBRARY } from './support/library.ts';
import type { Run } from './support/run.ts';
import { scenario } from './support/scenario.ts';

describe.each(LIBRARIES)('with $name', (library) => {
  scenario('delivers no more at a time than the key allows, over all runs and steps', async ({ service }) => {
    const path = service.workflow(
      library,
      '/limited',
      async (context) => {
        await context.run('one', () => {});
        await Promise.all([context.run('two', () => {}), context.run('three', () => {})]);
      },
      { flowControl: { key: 'shared', parallelism: 2 } },
    );
    const runs: Run[] = [];
    for (let n = 0; n < 4; n += 1) runs.push(await path.trigger());
    for (const run of runs) await run.result();
    const calls = service.app.calls('/limited');
    expect(calls).toHaveLength(4 * 6);
    expect(Math.max(...calls.map(({ beside }) => beside))).toBe(1);
  });
});

scenario('does not keep a place in its sleep, its wait, or while another is called', async ({ service }) => {
  const { app } = service;
  app.plain('/slow', async () => {
    await app.hold();
    return new Response('at last');
  });
  const flowControl = { key: 'one', parallelism: 1 };
  const patient = service.workflow(
    LIBRARY,
    '/patient',
    async (context) => {
      const results = await Promise.all([
        context.sleep('sleep', 600),
        context.waitForEvent('wait', 'event', { timeout: 600 }),
        context.call('call', { url: service.at('/slow') }),
      ]);
      return results.length;
    },
    { flowControl },
  );
  const quick = service.workflow(LIBRARY, '/quick', (context) => context.run('one', () => 'quick'), { flowControl });
  const waits = await patient.trigger();
  await service.until('the call', () => app.held > 0);
  const run = await quick.trigger();
  await service.until('its end', async () => (await run.log()).workflowState === 'RUN_SUCCESS');
  app.release();
  expect(await waits.result()).toBe(3);
});
