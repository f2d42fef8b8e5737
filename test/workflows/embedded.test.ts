/**
 * The workflow library that is embedded in the messaging client, in its newest version: it publishes each step separately, and
 * supports neither fetching of bodies nor deduplication nor detection (contract W 22).
 */
import { Client } from '@upstash/qstash';
import { serve, type WorkflowContext, type WorkflowServeOptions } from '@upstash/qstash/workflow';
import { expect } from 'vitest';
import { USER_HEADERS } from './support/app.ts';
import { LIBRARY, newestClient } from './support/library.ts';
import type { Run } from './support/run.ts';
import { scenario } from './support/scenario.ts';
import type { Service } from './support/service.ts';

/** Serves `program` at `/embedded`, begins a run of it, and answers that run. */
async function begin(
  service: Service,
  program: (context: WorkflowContext<unknown>) => Promise<void>,
  options: WorkflowServeOptions<Response, unknown> = {},
): Promise<Run> {
  const { app, env } = service;
  const handle = serve(program, { env, ...options });
  // This library does not send the user's headers to a failure function.
  if (options.failureFunction) app.plain('/embedded', handle);
  else app.workflow('/embedded', handle);
  const client = new Client({ baseUrl: env.QSTASH_URL, token: env.QSTASH_TOKEN, retry: false });
  await client.publishJSON({ url: service.at('/embedded'), body: { amount: 10 }, headers: USER_HEADERS });
  await service.quiet();
  const { runs } = await newestClient(env).logs({ filter: { workflowUrl: service.at('/embedded') } });
  expect(runs).toHaveLength(1);
  return service.run(runs[0]?.workflowRunId ?? '', LIBRARY);
}

scenario('runs steps, sleeps and groups', async ({ service }) => {
  let result: unknown;
  const run = await begin(service, async (context) => {
    const one = await context.run('one', () => (context.requestPayload as { amount: number }).amount);
    await context.sleep('sleep', 60);
    await context.sleepUntil('until', service.clock.nowMs() / 1000 + 5);
    const both = await Promise.all([context.run('a', () => one + 1), context.run('b', () => '🦦')]);
    await context.run('last', () => {
      result = both;
    });
  });
  expect((await run.finished()).workflowState).toBe('RUN_SUCCESS');
  expect(result).toEqual([11, '🦦']);
  // The first invocation, the beginning, four steps and a group of two.
  expect(service.app.calls('/embedded')).toHaveLength(1 + 1 + 4 + 4);
  expect(await run.groups()).toEqual([
    'Initial init: STEP_SUCCESS',
    'Run one: STEP_SUCCESS',
    'SleepFor sleep: STEP_SUCCESS',
    'SleepUntil until: STEP_SUCCESS',
    '[Run a: STEP_SUCCESS, Run b: STEP_SUCCESS]',
    'Run last: STEP_SUCCESS',
  ]);
});

scenario('calls', async ({ service }) => {
  service.app.plain('/third', async (request) => Response.json({ got: await request.text() }));
  let result: unknown;
  const run = await begin(service, async (context) => {
    const headers = { 'x-third': 'yes' };
    const answer = await context.call('call', service.at('/third'), 'POST', { some: 'body' }, headers);
    await context.run('last', () => {
      result = answer;
    });
  });
  expect((await run.finished()).workflowState).toBe('RUN_SUCCESS');
  expect(result).toEqual({ got: '{"some":"body"}' });
  expect(service.app.calls('/third')[0]?.headers).toMatchObject({ 'x-third': 'yes' });
  expect(service.app.calls('/embedded')).toHaveLength(1 + 1 + 2 + 1);
});

scenario('tells its failure function', async ({ service }) => {
  const told: unknown[] = [];
  const run = await begin(
    service,
    async (context) => {
      await context.run('one', () => {});
      await context.run('two', () => {
        throw new Error('my error');
      });
    },
    {
      failureFunction: async (context, status, response) => {
        told.push([context.requestPayload, status, response]);
      },
    },
  );
  expect((await run.finished()).workflowState).toBe('RUN_FAILED');
  expect(told).toEqual([[{ amount: 10 }, 500, 'my error']]);
  // The first invocation, the beginning, four attempts of the second step, and the failure.
  expect(service.app.calls('/embedded')).toHaveLength(1 + 1 + 4 + 1);
});
