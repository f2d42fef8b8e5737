/** The logs of runs: all kinds of steps in one run, redaction, and filters (contract W 16.3, 18, 20, 23). */
import { expect } from 'vitest';
import { USER_HEADERS } from './support/app.ts';
import { LIBRARY, newestClient } from './support/library.ts';
import { scenario } from './support/scenario.ts';

scenario('lists fifteen steps of every kind', async ({ service }) => {
  const { app, clock } = service;
  app.plain('/third', () => Response.json({ third: 3 }));
  const child = LIBRARY.create<string, string>((context) => context.run('child step', () => 'from the child'));
  const untilS = Math.ceil(clock.nowMs() / 1000) + 20;
  const main = LIBRARY.create<string, string>(async (context) => {
    await Promise.all([context.run('a', () => 1), context.run('b', () => ({ b: 2 }))]);
    await context.sleep('sleep', '5s');
    await context.sleepUntil('until', untilS);
    await context.call('call', { url: service.at('/third'), method: 'POST', body: 'called with' });
    await Promise.all([context.waitForEvent('wait', 'event', { timeout: '1h' }), context.run('beside', () => 3)]);
    await context.waitForEvent('in vain', 'never', { timeout: 10 });
    await context.notify('notify', 'nobody', { some: 'data' });
    const hook = await context.createWebhook('hook');
    await context.run('call the hook', async () => (await fetch(hook.webhookUrl, { method: 'POST' })).status);
    await context.waitForWebhook('wait for the hook', hook, '1h');
    await context.invoke('invoke', { workflow: child, body: 'to the child', headers: USER_HEADERS });
    return context.run('last', () => 'the end');
  });
  service.workflows(LIBRARY, '/log/', { main, child });
  const run = await service.triggered(LIBRARY, '/log/main').trigger({ body: 'the payload', label: 'all' });
  await service.until('the wait', async () => (await service.expectOk('GET', '/v2/waiters/event'))[0]);
  await LIBRARY.notify('event', 'told', service.env);
  expect(await run.result()).toBe('the end');

  const { steps, ...rest } = await run.log();
  expect(rest).toMatchObject({
    ...{ workflowRunId: run.id, workflowUrl: service.at('/log/main'), workflowState: 'RUN_SUCCESS' },
    ...{ workflowRunCreatedAt: expect.any(Number), workflowRunCompletedAt: expect.any(Number) },
    ...{ workflowRunResponse: '"the end"', label: 'all', labels: ['all'] },
  });
  const all = steps.flatMap((group) => group.steps as unknown as Record<string, unknown>[]);
  expect(all).toHaveLength(15);
  expect(new Set(all.map(({ state }) => state))).toEqual(new Set(['STEP_SUCCESS']));
  expect(steps.map(({ type }) => type).filter((type) => type === 'next')).toEqual([]);
  const stepOf = (name: string) => all.find(({ stepName }) => stepName === name);
  expect(stepOf('init')).toMatchObject({ stepType: 'Initial', callType: 'step', concurrent: 1, out: 'the payload' });
  expect(stepOf('init')).not.toHaveProperty('stepId');
  expect(stepOf('b')).toMatchObject({ stepId: 2, stepType: 'Run', concurrent: 2, out: '{"b":2}' });
  expect(stepOf('sleep')).toMatchObject({ stepId: 3, sleepFor: 5_000 });
  expect(stepOf('until')).toMatchObject({ stepId: 4, sleepUntil: untilS * 1_000 });
  expect(stepOf('call')).toMatchObject({
    ...{ stepId: 5, stepType: 'Call', callUrl: service.at('/third'), callMethod: 'POST', callBody: 'called with' },
    ...{ callResponseStatus: 200, callResponseBody: '{"third":3}' },
    callResponseHeaders: expect.objectContaining({ 'Content-Type': ['application/json'] }),
  });
  expect(stepOf('wait')).toMatchObject({ stepId: 6, waitEventId: 'event', waitTimeoutDuration: '1h', concurrent: 2 });
  expect(stepOf('wait')).not.toHaveProperty('waitTimeout');
  expect(stepOf('in vain')).toMatchObject({ waitTimeout: true, waitTimeoutDuration: '10s' });
  expect(stepOf('notify')).toMatchObject({ stepType: 'Notify' });
  expect(stepOf('wait for the hook')).toMatchObject({ stepType: 'WaitForWebhook' });
  expect(stepOf('invoke')).toMatchObject({
    ...{ stepType: 'Invoke', invokedWorkflowUrl: service.at('/log/child'), invokedWorkflowRunBody: 'to the child' },
    ...{ invokedWorkflowRunId: expect.stringMatching(/^wfr_/), invokedWorkflowCreatedAt: expect.any(Number) },
  });
});

scenario('shows nothing of what is redacted, and delivers all of it', async ({ service }) => {
  const { app, env } = service;
  const path = service.workflow<string>(LIBRARY, '/secret', async (context) => {
    const one = await context.run('one', () => `${context.requestPayload} of the step`);
    await context.run('two', () => {
      throw new Error(`${one} of the error`);
    });
  });
  app.plain('/told', () => new Response('canary of the answer'));
  const { workflowRunId } = await newestClient(env).trigger({
    ...{ url: path.url, body: 'canary', headers: { ...USER_HEADERS, 'x-secret': 'canary of the header' }, retries: 0 },
    ...{ redact: { body: true, header: ['X-Secret'] }, failureUrl: service.at('/told') },
  });
  const run = service.run(workflowRunId, LIBRARY);
  const { workflowState, dlqId } = await run.finished();
  expect(workflowState).toBe('RUN_FAILED');
  expect(app.calls('/secret').map(({ headers }) => headers['x-secret'])).toEqual([
    'canary of the header',
    'canary of the header',
  ]);
  expect(app.calls('/told')[0]?.headers['x-secret']).toBe('canary of the header');
  const shown = [
    await service.ask('GET', `/v2/workflows/logs?workflowRunId=${workflowRunId}`),
    await service.ask('GET', `/v2/workflows/messageLogs?workflowRunId=${workflowRunId}`),
    await service.ask('GET', '/v2/workflows/dlq'),
    await service.ask('GET', `/v2/workflows/dlq/${dlqId}`),
  ];
  for (const { status, text } of shown) {
    expect(status).toBe(200);
    expect(text).not.toContain('canary');
    expect(text).toContain('REDACTED:');
  }
});

scenario('finds runs and events by what is asked for', async ({ service }) => {
  const one = service.workflow(LIBRARY, '/one', (context) => context.run('step', () => 1));
  const two = service.workflow(
    LIBRARY,
    '/two',
    async (context) => {
      await context.run('step', () => {
        throw new Error('no');
      });
    },
    { retries: 0 },
  );
  const first = await one.trigger({ label: 'a' });
  await first.finished();
  const failed = await two.trigger({ label: 'b' });
  await failed.finished();
  const sleeper = service.workflow(LIBRARY, '/sleeper', (context) => context.sleep('long', '10d'));
  const asleep = await sleeper.trigger({ label: 'b' });
  await service.quiet();
  const client = newestClient(service.env);
  const idsOf = async (filter: NonNullable<Parameters<typeof client.logs>[0]>['filter']): Promise<string[]> =>
    (await client.logs(filter === undefined ? {} : { filter })).runs.map(({ workflowRunId }) => workflowRunId);
  expect(await idsOf(undefined)).toEqual([asleep.id, failed.id, first.id]);
  expect(await idsOf({ label: 'b' })).toEqual([asleep.id, failed.id]);
  expect(await idsOf({ state: 'RUN_FAILED' })).toEqual([failed.id]);
  expect(await idsOf({ workflowUrl: one.url })).toEqual([first.id]);
  const { events } = await service.expectOk('GET', '/v2/workflows/messageLogs?state=RUN_STARTED');
  expect(events.map(({ workflowRunId }: { workflowRunId: string }) => workflowRunId)).toEqual([
    ...[asleep.id, failed.id, first.id],
  ]);
  // Nothing of runs in the log of plain messages.
  expect(await service.expectOk('GET', '/v2/logs')).toMatchObject({ logs: [] });
});
