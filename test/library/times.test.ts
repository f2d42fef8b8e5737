/** Times and durations that workflows and triggers set, and how the server interprets them. */
import { expect, it } from 'vitest';
import type { Client } from '../../packages/workflow/src/index.ts';
import { serve } from '../../packages/workflow/src/node.ts';
import type { RouteFunction } from '../../packages/workflow/src/workflow.ts';
import type { Waypost } from '../../src/testing/types.ts';
import type { Endpoints } from '../support/listen.ts';
import { eachWorld } from './world.ts';

let waypost: Waypost;
let endpoints: Endpoints;
let client: Client;
eachWorld((world) => {
  ({ waypost, client, endpoints } = world);
});

async function begin(workflow: RouteFunction<unknown, unknown>, notBefore?: number): Promise<string> {
  const handle = serve(workflow, { env: { QSTASH_URL: waypost.url } });
  const url = await endpoints.listen((request, response) => void handle(request, response));
  return (await client.trigger({ url, retries: 0, ...(notBefore !== undefined && { notBefore }) })).workflowRunId;
}

async function stateOf(workflowRunId: string): Promise<string | undefined> {
  return (await client.logs({ workflowRunId })).runs[0]?.workflowState;
}

it.each([undefined, 'next tuesday', Number.NaN])('a sleep until %s fails, and is not over at once', async (time) => {
  const workflowRunId = await begin((context) => context.sleepUntil('until then', time as string));
  await waypost.advance('1m');
  expect(await stateOf(workflowRunId)).toBe('RUN_FAILED');
});

it.each([0.1 + 0.2 - 0.3, 0.1 + 0.2, 1e-9])('a sleep of %d s is over after its thousandths', async (seconds) => {
  const workflowRunId = await begin((context) => context.sleep('a little', seconds));
  await waypost.advance('1m');
  expect(await stateOf(workflowRunId)).toBe('RUN_SUCCESS');
});

it.each([
  ['a number of seconds', (ms: number) => ms / 1_000],
  ['a date', (ms: number) => new Date(ms)],
])('a sleep until %s between two seconds ends at that millisecond', async (_given, timeOf) => {
  const untilMs = Math.ceil(waypost.now().getTime() / 1_000) * 1_000 + 3_400;
  let wokenMs: number | undefined;
  const workflowRunId = await begin(async (context) => {
    await context.sleepUntil('until then', timeOf(untilMs));
    await context.run('note the time', () => {
      wokenMs = waypost.now().getTime();
    });
  });
  await waypost.advance('1m');
  expect(await stateOf(workflowRunId)).toBe('RUN_SUCCESS');
  expect(wokenMs).toBe(untilMs);
});

it('a run begins at the nearest second to a time between two', async () => {
  const notBefore = waypost.now().getTime() / 1_000 + 60.6;
  const workflowRunId = await begin((context) => context.run('step', () => 1), notBefore);
  await waypost.advance('2m');
  expect(await stateOf(workflowRunId)).toBe('RUN_SUCCESS');
});
