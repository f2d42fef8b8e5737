/** All ways to trigger a run, and the detection of a URL that serves no workflow (contract W 3.2, 3.3, 5, 6.1). */
import { describe, expect } from 'vitest';
import { USER_HEADERS } from './support/app.ts';
import { LIBRARIES, LIBRARY, newestClient, type Program } from './support/library.ts';
import type { Run } from './support/run.ts';
import { scenario } from './support/scenario.ts';
import type { Service } from './support/service.ts';

/** For requests without the library: what makes the user's headers arrive. */
const FORWARDED = Object.fromEntries(
  Object.entries(USER_HEADERS).map(([name, value]) => [`Upstash-Forward-${name}`, value]),
);

/** Three steps: four calls, however it begins. */
const threeSteps: Program<string> = async (context) => {
  const one = await context.run('one', () => `1 ${context.requestPayload}`);
  const two = await context.run('two', () => `2 ${one}`);
  return context.run('three', () => `3 ${two}`);
};

const STEPS = ['Initial init', 'Run one', 'Run two', 'Run three'].map((step) => `${step}: STEP_SUCCESS`);

/** The run that an endpoint began by itself: the only one of its URL. */
async function onlyRun(service: Service, url: string): Promise<Run> {
  const { runs } = await newestClient(service.env).logs({ filter: { workflowUrl: url } });
  expect(runs).toHaveLength(1);
  return service.run(runs[0]?.workflowRunId ?? '', LIBRARY);
}

describe.each(LIBRARIES)('with $name', (library) => {
  scenario('begins with a plain publish, in one call more', async ({ service }) => {
    const path = service.workflow(library, '/path', threeSteps);
    await service.expectOk('POST', `/v2/publish/${path.url}`, { headers: FORWARDED, body: '🦦' });
    await service.quiet();
    const run = await onlyRun(service, path.url);
    expect(await run.result()).toBe('3 2 1 🦦');
    const calls = service.app.calls('/path');
    expect(calls).toHaveLength(5);
    expect(calls[0]?.headers['upstash-workflow-runid']).toBeUndefined();
    expect(calls[0]?.body).toBe('🦦');
    // What the first delivery brought was forwarded by the library, and must not be what the others bring.
    expect(new Set(calls.map(({ headers }) => headers['upstash-message-id'])).size).toBe(5);
    expect(await run.groups()).toEqual(STEPS);
  });

  scenario('begins with a message of a queue', async ({ service }) => {
    const path = service.workflow(library, '/path', threeSteps);
    await service.expectOk('POST', `/v2/enqueue/in-order/${path.url}`, { headers: FORWARDED, body: 'queued' });
    await service.quiet();
    expect(await (await onlyRun(service, path.url)).result()).toBe('3 2 1 queued');
    expect(service.app.calls('/path')).toHaveLength(5);
  });

  scenario('tells the failure function that its trigger names, and that of a run by REST', async ({ service }) => {
    const told: unknown[] = [];
    const path = service.workflow<string>(
      library,
      '/fails',
      async (context) => {
        await context.run('one', () => {
          throw new library.NonRetryable('no');
        });
      },
      {
        failureFunction: async ({ context, failResponse }) => {
          told.push([context.requestPayload, failResponse]);
          return undefined;
        },
      },
    );
    await service.expectOk('POST', `/v2/publish/${path.url}`, { headers: FORWARDED, body: 'published' });
    await service.pass(60_000);
    // The older generation cannot be triggered over REST: it answers without the mark that says so.
    if (library === LIBRARY) {
      await service.expectOk('POST', `/v2/trigger/${path.url}`, { headers: FORWARDED, body: 'triggered' });
      await service.pass(60_000);
    }
    // A run that the newer generation begins by itself names nobody to tell; the older one does, with each message.
    expect(told).toEqual([[library === LIBRARY ? 'triggered' : 'published', 'no']]);
  });

  scenario('begins with each time of a schedule', async ({ service }) => {
    const path = service.workflow(library, '/tick', (context) => context.run('one', () => 'ticked'));
    const headers = { ...FORWARDED, 'Upstash-Cron': '* * * * *' };
    const { scheduleId } = await service.expectOk('POST', `/v2/schedules/${path.url}`, { headers, body: '{}' });
    await service.until('the second time', () => service.app.calls('/tick').length >= 6);
    await service.expectOk('DELETE', `/v2/schedules/${scheduleId}`);
    await service.pass(3_600_000);
    const calls = service.app.calls('/tick');
    expect(calls).toHaveLength(6);
    expect([0, 3].map((index) => calls[index]?.headers['upstash-schedule-id'])).toEqual([scheduleId, scheduleId]);
    const { runs } = await newestClient(service.env).logs({ filter: { workflowUrl: path.url } });
    expect(runs.map(({ workflowState, workflowRunResponse }) => [workflowState, workflowRunResponse])).toEqual([
      ['RUN_SUCCESS', '"ticked"'],
      ['RUN_SUCCESS', '"ticked"'],
    ]);
  });
});

scenario('begins several runs with one request', async ({ service }) => {
  const path = service.workflow(LIBRARY, '/path', threeSteps);
  const client = newestClient(service.env);
  const wish = { url: path.url, headers: USER_HEADERS };
  const began = await client.trigger([
    { ...wish, body: 'a' },
    { ...wish, body: 'b', workflowRunId: 'named' },
  ]);
  const results = [];
  for (const { workflowRunId } of began) results.push(await service.run(workflowRunId, LIBRARY).result());
  expect(results).toEqual(['3 2 1 a', '3 2 1 b']);
  expect(service.app.calls('/path')).toHaveLength(8);
});

scenario('begins over REST, at once', async ({ service }) => {
  const path = service.workflow(LIBRARY, '/path', threeSteps);
  const answer = await service.ask('POST', `/v2/trigger/${path.url}`, { headers: FORWARDED, body: '🦦' });
  expect(answer.status).toBe(200);
  expect(answer.json).toEqual({
    workflowRunId: expect.stringMatching(/^wfr_/),
    workflowCreatedAt: expect.any(Number),
  });
  const run = service.run(answer.json.workflowRunId, LIBRARY);
  expect(await run.result()).toBe('3 2 1 🦦');
  expect(service.app.calls('/path')).toHaveLength(4);
  expect(await run.groups()).toEqual(STEPS);
});

scenario('begins several runs over REST', async ({ service }) => {
  const path = service.workflow(LIBRARY, '/path', threeSteps);
  const item = { destination: path.url, headers: FORWARDED };
  const body = JSON.stringify([
    { ...item, body: 'a' },
    { ...item, body: 'b' },
  ]);
  const answer = await service.ask('POST', '/v2/batch/trigger', { body });
  expect([answer.status, answer.json.length]).toEqual([201, 2]);
  for (const [index, { workflowRunId }] of answer.json.entries()) {
    expect(await service.run(workflowRunId, LIBRARY).result()).toBe(`3 2 1 ${'ab'[index]}`);
  }
});

scenario('asks first which library it is, when told to, in one call more', async ({ service }) => {
  const path = service.workflow(LIBRARY, '/path', threeSteps);
  const headers = { ...FORWARDED, 'Upstash-Workflow-Unknown-Sdk': 'true' };
  const { workflowRunId } = await service.expectOk('POST', `/v2/trigger/${path.url}`, { headers, body: 'x' });
  const overRest = service.run(workflowRunId, LIBRARY);
  expect(await overRest.result()).toBe('3 2 1 x');
  const calls = service.app.calls('/path');
  expect(calls.map(({ headers }) => headers['upstash-workflow-unknown-sdk'] !== undefined)).toEqual([
    ...[true, false, false, false, false],
  ]);
  expect(calls.map(({ headers }) => headers['upstash-workflow-sdk-version'])).toEqual([undefined, '1', '1', '1', '1']);
  expect(await overRest.groups()).toEqual(STEPS);

  const byClient = await path.trigger({ body: 'y', headers: { 'Upstash-Workflow-Unknown-Sdk': 'true' } });
  expect(await byClient.result()).toBe('3 2 1 y');
  expect(service.app.calls('/path')).toHaveLength(10);
});

scenario('finds out that an URL is no workflow, at once', async ({ service }) => {
  service.app.plain('/page', () => new Response('a page'));
  const run = await service.triggered(LIBRARY, '/page', { failureUrl: service.at('/told') }).trigger();
  service.app.plain('/told', () => new Response());
  const log = await run.finished();
  expect(log.workflowState).toBe('RUN_FAILED');
  expect(service.app.calls('/page')).toHaveLength(1);
  expect(log.steps).toHaveLength(2);
  expect(log.steps[1]).toMatchObject({
    type: 'next',
    steps: [
      {
        state: 'STEP_FAILED',
        errors: [
          {
            error:
              'detected a non-workflow destination for trigger/invoke. make sure you are sending the request to the correct endpoint',
            body: 'a page',
          },
        ],
      },
    ],
  });
});

scenario('finds out that an URL cannot be triggered over REST, at once', async ({ service }) => {
  service.app.plain('/page', () => new Response('a page'));
  const headers = { ...FORWARDED, 'Upstash-Failure-Callback': service.at('/told') };
  service.app.plain('/told', () => new Response());
  const { workflowRunId } = await service.expectOk('POST', `/v2/trigger/${service.at('/page')}`, { headers });
  const log = await service.run(workflowRunId, LIBRARY).finished();
  expect([log.workflowState, log.steps.length]).toEqual(['RUN_FAILED', 2]);
  expect(service.app.calls('/page')).toHaveLength(1);
  expect(log.steps[1]).toMatchObject({
    steps: [{ errors: [{ error: 'trigger rest api is only usable with sdk versions after v1.0.0 major version' }] }],
  });
});

scenario('fails the step that asks for more than the server gives, beside others too', async ({ service }) => {
  service.app.plain('/third', () => new Response());
  const call = { url: service.at('/third'), method: 'GET' as const };
  const alone = service.workflow(LIBRARY, '/alone', async (context) => {
    await context.call('huge', { ...call, retries: 1_000_000 });
  });
  const beside = service.workflow(LIBRARY, '/beside', async (context) => {
    await Promise.all([context.call('normal', call), context.call('huge', { ...call, retries: 1_000_000 })]);
  });
  const [one, two] = [await alone.trigger(), await beside.trigger()];
  const logs = [await one.finished(), await two.finished()];
  expect(logs.map(({ workflowState }) => workflowState)).toEqual(['RUN_FAILED', 'RUN_FAILED']);
  expect(await one.groups()).toEqual(['Initial init: STEP_SUCCESS', 'next: STEP_FAILED (1 errors)']);
  expect((await two.groups())[1]).toMatch(/Call huge: STEP_FAILED \(1 errors\)/);
  // The one that is refused and the failure; no retry.
  expect(service.app.calls('/alone').map(({ status }) => status)).toEqual([489, 200]);
});
