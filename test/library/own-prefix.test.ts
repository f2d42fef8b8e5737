/** Runs that are triggered with headers in the prefix of Waypost. Their deliveries use it, too. */
import { expect, it } from 'vitest';
import { Client, type WorkflowContext, type WorkflowServeOptions } from '../../packages/workflow/src/index.ts';
import { serve } from '../../packages/workflow/src/node.ts';
import { inBothDialects } from '../../packages/workflow/src/wire.ts';
import type { Waypost } from '../../src/testing/types.ts';
import type { Endpoints } from '../support/listen.ts';
import { eachWorld } from './world.ts';

let waypost: Waypost;
let endpoints: Endpoints;
eachWorld((world) => {
  ({ waypost, endpoints } = world);
});

/** Serves `program`, which checks signatures, begins it with such headers, and waits for its end; answers all runs. */
async function run(
  program: (context: WorkflowContext) => Promise<unknown>,
  { by = 'trigger', ...options }: { by?: 'trigger' | 'publish' } & WorkflowServeOptions = {},
): Promise<unknown[]> {
  const handle = serve(program, { ...options, env: waypost.env() });
  const url = await endpoints.listen((request, response) => {
    if (request.url === '/other') response.end();
    else void handle(request, response);
  });
  await fetch(`${waypost.url}/v2/${by}/${url}/workflow`, {
    method: 'POST',
    headers: { authorization: `Bearer ${waypost.token}`, 'Waypost-Retries': '1', 'Waypost-Label': 'own' },
    body: '"hello"',
  });
  await waypost.runUntilIdle();
  const { runs } = await new Client({ baseUrl: waypost.url, token: waypost.token }).logs();
  return runs.map(({ workflowState, workflowRunResponse }) => [workflowState, workflowRunResponse]);
}

it.each(['trigger', 'publish'] as const)('go on after a %s', async (by) => {
  const program = (context: WorkflowContext) => context.run('one', () => context.requestPayload);
  expect(await run(program, { by })).toEqual([['RUN_SUCCESS', '"hello"']]);
});

it('know their label', async () => {
  expect(await run((context) => context.run('one', () => context.label))).toEqual([['RUN_SUCCESS', '"own"']]);
});

it('know how often a step was tried', async () => {
  let tries = 0;
  const program = (context: WorkflowContext) =>
    context.run('one', () => {
      tries += 1;
      if (tries === 1) throw new Error('the first time');
      return tries;
    });
  expect(await run(program, { lingerMs: 0 })).toEqual([['RUN_SUCCESS', '2']]);
});

it('are brought the answer of a call, and a journal that was not sent', async () => {
  const program = async (context: WorkflowContext) => {
    const { status } = await context.call('ask', { url: context.url.replace('workflow', 'other') });
    const large = await context.run('large', () => 'x'.repeat(4 * 1024 * 1024));
    await context.sleep('long', '1h');
    return [status, large.length];
  };
  expect(await run(program, { lingerMs: 0 })).toEqual([['RUN_SUCCESS', '[200,4194304]']]);
});

it('call the failure function', async () => {
  const failures: string[] = [];
  const ended = await run(
    (context) =>
      context.run('one', () => {
        throw new Error('broken');
      }),
    {
      failureFunction: async ({ failResponse }) => {
        failures.push(failResponse);
      },
    },
  );
  expect([ended, failures]).toEqual([[['RUN_FAILED', undefined]], ['broken']]);
});

it('give way to the other prefix where both are there', () => {
  const headers = inBothDialects([
    ['Upstash-Retried', '2'],
    ['Waypost-Retried', '1'],
    ['Waypost-Message-Id', 'm'],
  ]);
  expect([headers.get('upstash-retried'), headers.get('upstash-message-id')]).toEqual(['2', 'm']);
});
