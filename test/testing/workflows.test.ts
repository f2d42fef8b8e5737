/** The test kit with the unmodified official workflow library. */
import { Client } from '@upstash/workflow';
import { serve } from '@upstash/workflow/express';
import express from 'express';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Waypost } from '../../src/testing/types.ts';
import { startWaypost } from '../../src/testing/waypost.ts';
import { TestApp } from './app.ts';

const DAY_MS = 86_400_000;

let waypost: Waypost;
let client: Client;
beforeEach(async () => {
  waypost = await startWaypost();
  client = new Client({ baseUrl: waypost.url, token: waypost.token });
});
afterEach(() => waypost.stop());

/** Serves one workflow with Express. */
function open(program: Parameters<typeof serve<{ name: string }>>[0]): Promise<TestApp> {
  const app = express();
  app.use(express.json());
  app.use(serve(program, { env: waypost.env() }));
  return TestApp.serve(app);
}

it('lets a workflow sleep for seven days', async () => {
  const done: [step: string, afterMs: number][] = [];
  const start = waypost.now().getTime();
  const note = (step: string) => () => void done.push([step, waypost.now().getTime() - start]);
  const app = await open(async (context) => {
    await context.run('welcome', note('welcome'));
    await context.sleep('a week', '7d');
    await context.run('remind', note('remind'));
    return `reminded ${context.requestPayload.name}`;
  });
  const { workflowRunId } = await client.trigger({ url: app.url, body: { name: 'Ann' } });
  await waypost.runUntilIdle();
  expect(done).toEqual([
    ['welcome', 0],
    ['remind', 7 * DAY_MS],
  ]);
  const [run] = await waypost.runs();
  expect(run).toMatchObject({ workflowRunId, workflowState: 'RUN_SUCCESS', workflowRunResponse: '"reminded Ann"' });
  await app.close();
});

it('reaches the deadline of an event that is never sent', async () => {
  const app = await open(async (context) => {
    const { timeout } = await context.waitForEvent('payment', 'paid', { timeout: '3d' });
    return timeout ? 'never paid' : 'paid';
  });
  await client.trigger({ url: app.url, body: {} });
  await waypost.advance('2d');
  expect((await waypost.runs())[0]?.workflowState).toBe('RUN_STARTED');
  await waypost.runUntilIdle();
  expect((await waypost.runs())[0]?.workflowRunResponse).toBe('"never paid"');
  await app.close();
});

it('repeats a step whose response was lost, and shows a failed run in the dead letter queue', async () => {
  const app = await open((context) => context.run('charge', () => 'charged'));
  waypost.disturb({ answer: 'lost' });
  await client.trigger({ url: app.url, body: {}, retries: 1 });
  await waypost.runUntilIdle();
  expect((await waypost.runs())[0]).toMatchObject({ workflowState: 'RUN_SUCCESS', workflowRunResponse: '"charged"' });
  waypost.disturb({ answer: 500, times: 2 });
  const { workflowRunId } = await client.trigger({ url: app.url, body: {}, retries: 1 });
  await waypost.runUntilIdle();
  expect((await waypost.dlq()).map((entry) => entry.workflowRunId)).toEqual([workflowRunId]);
  await app.close();
});
