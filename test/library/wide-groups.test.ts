/** The number of steps that may run in parallel (contract K 3.2). */
import { afterEach, expect, it } from 'vitest';
import { Client } from '../../packages/workflow/src/index.ts';
import type { WorkflowRunLog } from '../../packages/workflow/src/logs.ts';
import { serve } from '../../packages/workflow/src/node.ts';
import type { Waypost } from '../../src/testing/types.ts';
import { startWaypost } from '../../src/testing/waypost.ts';
import { Endpoints } from '../support/listen.ts';

let waypost: Waypost;
const endpoints = new Endpoints();
afterEach(async () => {
  endpoints.close();
  await waypost.stop();
});

/** A run of a workflow with so many steps at once, which returns the sum of their numbers. */
async function runOf(steps: number, settings: Record<string, string> = {}): Promise<WorkflowRunLog | undefined> {
  waypost = await startWaypost({ settings });
  const client = new Client({ baseUrl: waypost.url, token: waypost.token });
  const handle = serve(
    async (context) => {
      const each = Array.from({ length: steps }, (_, number) => context.run(`step ${number}`, () => number));
      const numbers = await Promise.all(each);
      return numbers.reduce((sum, number) => sum + number, 0);
    },
    { env: { QSTASH_URL: waypost.url } },
  );
  const url = await endpoints.listen((request, response) => void handle(request, response));
  const { workflowRunId } = await client.trigger({ url: `${url}/workflow`, retries: 0 });
  await waypost.runUntilIdle();
  return (await client.logs({ workflowRunId })).runs[0];
}

it('runs 150 steps side by side', async () => {
  const run = await runOf(150);
  expect([run?.workflowState, run?.workflowRunResponse]).toEqual(['RUN_SUCCESS', '11175']);
  expect(run?.steps.map(({ steps }) => steps.length)).toEqual([1, 150]);
});

it('fails a run with more steps side by side than a batch may have, and says so', async () => {
  const run = await runOf(4, { WAYPOST_BATCH_ITEMS_MAX: '3' });
  expect(run?.workflowState).toBe('RUN_FAILED');
  expect(JSON.stringify(run?.steps)).toContain('quota maxAppend exceeded, current limit: 3');
});
