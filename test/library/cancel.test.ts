/** A run that is cancelled by its own function or by a client. Its endpoint has no token of the project. */
import { expect, it } from 'vitest';
import type { Client, WorkflowContext } from '../../packages/workflow/src/index.ts';
import { serve } from '../../packages/workflow/src/node.ts';
import type { Waypost } from '../../src/testing/types.ts';
import type { Endpoints } from '../support/listen.ts';
import { eachWorld } from './world.ts';

let waypost: Waypost;
let client: Client;
let endpoints: Endpoints;
eachWorld((world) => {
  ({ waypost, client, endpoints } = world);
});

/** Serves `program`, triggers it, and waits for its end; answers the state of the run, and how often it was called. */
async function run(program: (context: WorkflowContext) => Promise<unknown>): Promise<[state: string, calls: number]> {
  let calls = 0;
  const handle = serve(program, { env: { QSTASH_URL: waypost.url } });
  const url = await endpoints.listen((request, response) => {
    calls += 1;
    void handle(request, response);
  });
  const { workflowRunId } = await client.trigger({ url: `${url}/workflow` });
  await waypost.runUntilIdle();
  const { runs } = await client.logs({ workflowRunId });
  return [runs[0]?.workflowState ?? 'none', calls];
}

it('ends when its function says so', async () => {
  const executed: number[] = [];
  const ended = await run(async (context) => {
    executed.push(await context.run('one', () => 1));
    await context.cancel();
    executed.push(await context.run('two', () => 2));
  });
  expect([...ended, executed]).toEqual(['RUN_CANCELED', 1, [1]]);
});

it('tells the function that is under way with its next checkpoint', async () => {
  const executed: string[] = [];
  const ended = await run(async (context) => {
    context.signal.addEventListener('abort', () => executed.push('stopped'));
    await context.run('one', async () => {
      await client.cancel(context.workflowRunId);
      executed.push(`one ${context.signal.aborted}`);
    });
    await context.run('two', () => executed.push('two'));
  });
  expect([...ended, executed]).toEqual(['RUN_CANCELED', 1, ['one false', 'stopped']]);
});

it('tells it also when the call has stayed for what came before', async () => {
  const executed = new Set<string>();
  const ended = await run(async (context) => {
    context.signal.addEventListener('abort', () => executed.add('stopped')); // each time that the function begins
    await context.sleep('short', '1s');
    await context.run('one', () => client.cancel(context.workflowRunId));
    await context.run('two', () => executed.add('two'));
  });
  expect([...ended, executed]).toEqual(['RUN_CANCELED', 1, new Set(['stopped'])]);
});
