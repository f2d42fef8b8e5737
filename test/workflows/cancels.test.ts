/** Cancelled runs: by themselves, by a client, and in bulk (contract W 12.2, 17.2). */
import { describe, expect } from 'vitest';
import { USER_HEADERS } from './support/app.ts';
import { LIBRARIES, LIBRARY, newestClient, oldestClient } from './support/library.ts';
import { scenario } from './support/scenario.ts';

describe.each(LIBRARIES)('with $name', (library) => {
  scenario('stops itself', async ({ service }) => {
    let failures = 0;
    const path = service.workflow(
      library,
      '/stops',
      async (context) => {
        await context.run('one', () => {});
        await context.cancel();
        await context.run('never', () => {});
      },
      {
        failureFunction: async () => {
          failures += 1;
          return undefined;
        },
      },
    );
    const run = await path.trigger();
    expect((await run.finished()).workflowState).toBe('RUN_CANCELED');
    expect([service.app.calls('/stops').length, failures]).toEqual([2, 0]);
    expect((await run.flat())[0]).toBe('RUN_STARTED RUN_CANCELED');
    expect(await service.expectOk('GET', '/v2/workflows/dlq')).toEqual({ messages: [] });
  });

  scenario('is stopped in its sleep', async ({ service }) => {
    const path = service.workflow(library, '/sleeps', async (context) => {
      await context.sleep('long', 600);
      await context.run('never', () => {});
    });
    const run = await path.trigger();
    await service.pass(60_000);
    await library.cancel(run.id, service.env);
    expect((await run.finished()).workflowState).toBe('RUN_CANCELED');
    expect(service.app.calls('/sleeps')).toHaveLength(1);
    expect(await run.flat()).toEqual([
      'RUN_STARTED RUN_CANCELED',
      'init: CREATED ACTIVE DELIVERED',
      'long: CREATED CANCEL_REQUESTED CANCELED',
    ]);
    expect(await run.groups()).toEqual(['Initial init: STEP_SUCCESS', 'SleepFor long: STEP_CANCELED']);
  });

  scenario('is stopped while it waits, so that nobody waits any more', async ({ service }) => {
    const path = service.workflow(library, '/waits', (context) =>
      context.waitForEvent('wait', 'event', { timeout: '1h' }),
    );
    const run = await path.trigger();
    await service.quiet();
    await library.cancel(run.id, service.env);
    expect(await library.notify('event', 'late', service.env)).toEqual([]);
    expect((await run.finished()).workflowState).toBe('RUN_CANCELED');
    expect(service.app.calls('/waits')).toHaveLength(1);
  });

  scenario('is stopped while it waits for a run that it has invoked, which goes on to its end', async ({ service }) => {
    const child = library.create<unknown, string>(async (context) => {
      await context.sleep('long', 600);
      return context.run('last', () => 'done');
    });
    const main = library.create(async (context) => {
      await context.invoke('child', { workflow: child, body: 1, headers: USER_HEADERS });
      await context.run('never', () => {});
    });
    service.workflows(library, '/nested/', { main, child });
    const run = await service.triggered(library, '/nested/main').trigger();
    await service.pass(60_000);
    await library.cancel(run.id, service.env);
    const [invoke] = (await run.log()).steps[1]?.steps ?? [];
    if (invoke === undefined || !('invokedWorkflowRunId' in invoke)) throw new Error('no invoked workflow');
    const invoked = service.run(invoke.invokedWorkflowRunId ?? '', library);
    expect((await invoked.log()).workflowState).toBe('RUN_STARTED');
    await service.pass(3_600_000);
    expect((await invoked.finished()).workflowState).toBe('RUN_SUCCESS');
    expect((await run.log()).workflowState).toBe('RUN_CANCELED');
    expect(service.app.calls('/nested/main')).toHaveLength(1);
  });

  scenario('is stopped while a step runs, whose result is refused without a fuss', async ({ service }) => {
    const { app } = service;
    const path = service.workflow(library, '/runs', async (context) => {
      await context.run('held', () => app.hold());
      await context.run('never', () => {});
    });
    const run = await path.trigger();
    await service.until('the step', () => app.held > 0);
    await library.cancel(run.id, service.env);
    app.release();
    expect((await run.finished()).workflowState).toBe('RUN_CANCELED');
    expect(app.calls('/runs').map(({ status }) => status)).toEqual([200]);
  });
});

scenario('stops many at once: by ids, by label, by URL, and all', async ({ service }) => {
  const sleeping = (path: string) =>
    service.workflow(LIBRARY, path, async (context) => {
      await context.sleep('long', 600);
    });
  const [one, two] = [sleeping('/one'), sleeping('/two')];
  const runs = [];
  for (const label of ['a', 'a', 'b', 'c']) runs.push(await one.trigger({ label }));
  for (const label of ['b', 'd']) runs.push(await two.trigger({ label }));
  const ids = runs.map(({ id }) => id);
  await service.quiet();
  const client = newestClient(service.env);
  expect(await client.cancel([ids[0] ?? '', ids[3] ?? '', 'wfr_unknown'])).toEqual({ cancelled: 2 });
  expect(await client.cancel([ids[0] ?? '', ids[3] ?? ''])).toEqual({ cancelled: 0 });
  expect(await client.cancel({ filter: { label: 'b', workflowUrl: two.url } })).toEqual({ cancelled: 1 });
  expect(await client.cancel({ filter: { workflowUrlStartingWith: service.at('/o') } })).toEqual({ cancelled: 2 });
  expect(await oldestClient(service.env).cancel({ urlStartingWith: service.at('/nowhere') })).toEqual({ cancelled: 0 });
  expect(await client.cancel({ all: true })).toEqual({ cancelled: 1 });
  await service.pass(3_600_000);
  expect([service.app.calls('/one').length, service.app.calls('/two').length]).toEqual([4, 2]);
  for (const run of runs) expect((await run.log()).workflowState).toBe('RUN_CANCELED');
});
