/** Sequential steps, sleeps and loops; the first and last events of a run (contract W 3.1, 12.1, 14.1 to 14.3). */
import { describe, expect } from 'vitest';
import { LIBRARIES, LIBRARY } from './support/library.ts';
import { scenario } from './support/scenario.ts';

const DELIVERED = 'CREATED ACTIVE DELIVERED';

describe.each(LIBRARIES)('with $name', (library) => {
  scenario('runs three steps in four calls', async ({ service }) => {
    const path = service.workflow<string>(library, '/path', async (context) => {
      const one = await context.run('one', () => `1 ${context.requestPayload}`);
      const two = await context.run('two', async () => `2 ${one}`);
      return context.run('three', () => ({ all: `3 ${two}` }));
    });
    const run = await path.trigger({ body: '“quotes” 🦦' });
    expect(await run.result()).toEqual({ all: '3 2 1 “quotes” 🦦' });
    expect(service.app.calls('/path')).toHaveLength(4);
    expect(await run.flat()).toEqual([
      'RUN_STARTED RUN_SUCCESS',
      `init: ${DELIVERED}`,
      `one: ${DELIVERED}`,
      `two: ${DELIVERED}`,
      `three: ${DELIVERED}`,
    ]);
    expect(await run.groups()).toEqual([
      'Initial init: STEP_SUCCESS',
      'Run one: STEP_SUCCESS',
      'Run two: STEP_SUCCESS',
      'Run three: STEP_SUCCESS',
    ]);
  });

  scenario('sleeps for a time and until a time, with one call for each', async ({ service }) => {
    const { clock } = service;
    const startMs = clock.nowMs();
    const wokenS: number[] = [];
    const note = (): void => {
      wokenS.push(Math.round((clock.nowMs() - startMs) / 1000));
    };
    const path = service.workflow(library, '/sleep', async (context) => {
      await context.run('before', note);
      await context.sleepUntil('until', startMs / 1000 + 3);
      await context.run('between', note);
      await context.sleep('for', 20);
      await context.run('then', note);
      await context.sleep('for a day', '1d');
      await context.run('after', note);
    });
    const run = await path.trigger();
    expect(await run.result()).toBeUndefined();
    expect(wokenS).toEqual([0, 3, 23, 23 + 86_400]);
    expect(service.app.calls('/sleep')).toHaveLength(8);
    const events = await run.events();
    const slept = events.filter(({ state, stepInfo }) => state === 'CREATED' && stepInfo.stepType.startsWith('Sleep'));
    expect(slept.map(({ stepInfo, nextDeliveryTime }) => [stepInfo.stepName, nextDeliveryTime - startMs])).toEqual([
      ['until', expect.closeTo(3_000, -3)],
      ['for', expect.closeTo(23_000, -3)],
      ['for a day', expect.closeTo(23_000 + 86_400_000, -3)],
    ]);
    expect(slept.slice(1).map(({ stepInfo }) => stepInfo.sleepFor)).toEqual([20_000, 86_400_000]);
    expect(await run.groups()).toContain('SleepUntil until: STEP_SUCCESS');
  });

  scenario('goes on at once when what it sleeps for is asked for', async ({ service }) => {
    const path = service.workflow(library, '/sleep', async (context) => {
      await context.sleep('for a year', '365d');
      return 'awake';
    });
    const run = await path.trigger();
    await service.quiet();
    const asleep = (await run.events()).find(
      ({ state, stepInfo }) => state === 'CREATED' && stepInfo.stepType === 'SleepFor',
    );
    expect((await service.ask('POST', `/v2/messages/${asleep.stepInfo.messageId}/retry`)).status).toBe(200);
    await service.quiet();
    expect(await run.groups()).toContain('SleepFor for a year: STEP_SUCCESS');
    expect(await run.result()).toBe('awake');
  });

  scenario('sleeps in a loop and ends in parallel', async ({ service }) => {
    const path = service.workflow<{ amount: number }>(library, '/loop', async (context) => {
      for (let attempt = 1; attempt <= 5; attempt += 1) {
        if (await context.run('charge', () => attempt === 3)) break;
        await context.sleep('pause', 2);
      }
      const [updated, receipt, slept] = await Promise.all([
        context.run('update', () => context.requestPayload.amount),
        context.run('receipt', () => 'sent'),
        context.sleep('rest', 5),
      ]);
      return [updated, receipt, slept ?? 'slept'];
    });
    const run = await path.trigger({ body: { amount: 10 } });
    expect(await run.result()).toEqual([10, 'sent', 'slept']);
    expect(service.app.calls('/loop')).toHaveLength(12);
    expect(await run.groups()).toEqual([
      'Initial init: STEP_SUCCESS',
      'Run charge: STEP_SUCCESS',
      'SleepFor pause: STEP_SUCCESS',
      'Run charge: STEP_SUCCESS',
      'SleepFor pause: STEP_SUCCESS',
      'Run charge: STEP_SUCCESS',
      '[Run update: STEP_SUCCESS, Run receipt: STEP_SUCCESS, SleepFor rest: STEP_SUCCESS]',
    ]);
  });

  scenario('takes results of every kind, and none', async ({ service }) => {
    const path = service.workflow(library, '/kinds', async (context) => {
      const all: unknown[] = [context.requestPayload === undefined];
      for (const value of [undefined, null, 0, '', 'text', '{"json":"text"}', [1], { a: { b: '💡' } }, true]) {
        all.push((await context.run('value', () => Promise.resolve(value))) ?? String(value));
      }
      return all;
    });
    const run = await path.trigger();
    const expected = [true, 'undefined', 'null', 0, '', 'text', '{"json":"text"}', [1], { a: { b: '💡' } }, true];
    // A text that is JSON comes back parsed from some generations: the library's own doing.
    expect(JSON.stringify(await run.result())).toBe(JSON.stringify(expected));
    expect(service.app.calls('/kinds')).toHaveLength(10);
  });

  scenario('waits for its first delivery as long as the trigger says', async ({ service }) => {
    const path = service.workflow(library, '/later', (context) => context.run('one', () => 'late'));
    const startMs = service.clock.nowMs();
    const later = await path.trigger({ delay: 60 });
    const atHour = await path.trigger({ notBefore: Math.ceil(startMs / 1000) + 3600 });
    await service.pass(59_000);
    expect(service.app.calls('/later')).toEqual([]);
    expect((await later.log()).workflowState).toBe('RUN_STARTED');
    expect(await later.result()).toBe('late');
    expect(await atHour.result()).toBe('late');
    expect(service.app.calls('/later')).toHaveLength(4);
    const [, created] = await later.events();
    expect(created.nextDeliveryTime - created.time).toBe(60_000);
  });

  scenario('carries a label on every delivery', async ({ service }) => {
    const path = service.workflow(library, '/label', async (context) => {
      await context.run('one', () => {});
      await context.sleep('pause', 1);
      return context.label;
    });
    const run = await path.trigger({ label: 'orders.eu' });
    expect(await run.result()).toBe('orders.eu');
    expect(service.app.calls('/label').map(({ headers }) => headers['upstash-label'])).toEqual(
      Array.from({ length: 3 }, () => 'orders.eu'),
    );
    expect(await run.log()).toMatchObject({ label: 'orders.eu', labels: ['orders.eu'] });
  });

  scenario('runs twice under one id, one run after the other', async ({ service }) => {
    const path = service.workflow<number>(library, '/same', (context) =>
      context.run('one', () => context.requestPayload),
    );
    const first = await path.trigger({ workflowRunId: 'order-7', body: 1 });
    expect(first.id).toBe('wfr_order-7');
    expect(await first.result()).toBe(1);
    const second = await path.trigger({ workflowRunId: 'order-7', body: 1 });
    expect(await second.result()).toBe(1);
    expect(service.app.calls('/same')).toHaveLength(4);
    const runs = await library.runs(second.id, service.env);
    expect(runs.map(({ workflowState }) => workflowState)).toEqual(['RUN_SUCCESS', 'RUN_SUCCESS']);
    expect(runs[0]?.workflowRunCreatedAt).toBeGreaterThan(runs[1]?.workflowRunCreatedAt ?? Number.NaN);
  });

  scenario('does not run a second time while a run of that id goes on', async ({ service }) => {
    const path = service.workflow<number>(library, '/once', async (context) => {
      await context.sleep('long', 60);
      return context.run('one', () => context.requestPayload);
    });
    const run = await path.trigger({ workflowRunId: 'order-8', body: 1 });
    await service.pass(10_000);
    await path.trigger({ workflowRunId: 'order-8', body: 2 });
    expect(await run.result()).toBe(1);
    expect(service.app.calls('/once')).toHaveLength(3);
    expect(await library.runs(run.id, service.env)).toHaveLength(1);
  });

  scenario('fails a run whose function returns before its first step', async ({ service }) => {
    const path = service.workflow(library, '/none', async () => 'too early', { retries: 0 });
    const run = await path.trigger();
    expect((await run.finished()).workflowState).toBe('RUN_FAILED');
    expect(service.app.calls('/none').map(({ status }) => status)).toContain(400);
    expect(await run.groups()).toEqual(['Initial init: STEP_SUCCESS', 'next: STEP_FAILED (1 errors)']);
  });
});

scenario('tells the program which run it is', async ({ service }) => {
  const path = service.workflow(LIBRARY, '/who', async (context) => {
    await context.run('one', () => {});
    return [context.workflowRunId, context.workflowRunCreatedAt, context.url, context.labels, context.retried];
  });
  const run = await path.trigger({ label: 'a' });
  const { workflowRunCreatedAt } = await run.finished();
  expect(await run.result()).toEqual([run.id, workflowRunCreatedAt, path.url, ['a'], 0]);
});
