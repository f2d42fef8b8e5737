/** The logs of runs over HTTP, with the real engine and store (contract W 17.3, 18, 19.5). The tests act as the client library. */
import { Value } from '@sinclair/typebox/value';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { RunEventsSchema, RunExplanationSchema, RunListSchema } from '../../src/api/runs/run-log-views.ts';
import { openTimedWorld, type TimedWorld, to } from './support/timed-world.ts';
import type { Json } from './support/world.ts';

let world: TimedWorld;
beforeEach(async () => {
  world = await openTimedWorld();
});
afterEach(() => world.close());

const PROJECT = 1;

/** The endpoint of the runs: it responds to every request with `status` after a second. */
const WORKFLOW = to('wf');

interface Sent {
  url?: string;
  body?: unknown;
  headers?: Record<string, string>;
}

/** Publishes into a run, as one batch, and returns the ids of the messages. */
async function send(runId: string, messages: Sent[]): Promise<string[]> {
  const items = messages.map(({ url = WORKFLOW, body, headers }) => ({
    destination: url,
    body: typeof body === 'string' ? body : JSON.stringify(body),
    headers: {
      ...{ 'upstash-workflow-init': 'false', 'upstash-workflow-runid': runId, 'upstash-workflow-url': WORKFLOW },
      ...headers,
    },
  }));
  const reply = await world.post('batch', items);
  expect(reply.status, reply.text).toBe(200);
  return reply.json.map(({ messageId }: Json) => messageId);
}

async function start(runId: string, { url = WORKFLOW, body = 'payload', headers }: Sent = {}): Promise<string> {
  const init = {
    'upstash-workflow-init': 'true',
    'upstash-workflow-url': url,
    'upstash-feature-set': 'WF_TriggerOnConfig',
    'upstash-failure-callback': url,
  };
  const [messageId = ''] = await send(runId, [{ url, body, headers: { ...init, ...headers } }]);
  return messageId;
}

function step(stepId: number, members: Record<string, unknown> = {}): Record<string, unknown> {
  return { stepId, stepName: `s${stepId}`, stepType: 'Run', out: `"r${stepId}"`, concurrent: 1, ...members };
}

async function runs(query = ''): Promise<Json[]> {
  const reply = await world.get(`workflows/logs?${query}`);
  expect(reply.status, reply.text).toBe(200);
  expect([...Value.Errors(RunListSchema, reply.json)]).toEqual([]);
  const older = await world.get(`workflows/events?groupBy=workflowRunId&${query}`);
  expect(older.text).toBe(reply.text);
  return reply.json.runs;
}

/** Oldest first: the state, with the step's name or id where it is one of a message. */
async function events(query = ''): Promise<string[]> {
  const reply = await world.get(`workflows/messageLogs?${query}`);
  expect(reply.status, reply.text).toBe(200);
  expect([...Value.Errors(RunEventsSchema, reply.json)]).toEqual([]);
  expect((await world.get(`workflows/events?${query}`)).text).toBe(reply.text);
  const found: Json[] = reply.json.events;
  return found.toReversed().map(({ state, stepInfo }) => (stepInfo ? `${state} ${stepInfo.stepName}` : state));
}

async function explained(runId: string): Promise<Json> {
  const reply = await world.get(`workflows/runs/${runId}/explain`);
  expect(reply.status, reply.text).toBe(200);
  expect([...Value.Errors(RunExplanationSchema, reply.json)]).toEqual([]);
  return reply.json;
}

/** `name:STATE` of each step, group by group. */
function shapeOf({ steps }: Json): string[] {
  return steps.map(
    (group: Json) =>
      `${group.type} ${group.steps.map(({ stepName, messageId, state }: Json) => `${stepName ?? messageId}:${state}`).join(' ')}`,
  );
}

it('keeps a cancelled run with what it had yet to do', async () => {
  await start('wfr_a');
  await send('wfr_a', [
    { body: step(1, { stepType: 'SleepFor', sleepFor: 60, out: undefined }), headers: { 'upstash-delay': '60s' } },
  ]);
  expect(await explained('wfr_a')).toMatchObject({ reason: 'attempting', others: 1 });
  await world.clock.advanceBy(2_000);
  expect(await explained('wfr_a')).toMatchObject({
    ...{ reason: 'sleeping', stepId: 1, stepName: 's1', stepType: 'SleepFor', due: expect.any(Number), others: 0 },
    explanation: expect.stringMatching(/^Sleeps in step 1 \(s1\) until /),
  });
  await world.engine.cancelRun(PROJECT, 'wfr_a');
  const [run] = await runs('state=RUN_CANCELED');
  expect(shapeOf(run)).toEqual(['sequential init:STEP_SUCCESS', 'sequential s1:STEP_CANCELED']);
  expect(await explained('wfr_a')).toMatchObject({ reason: 'cancelled', at: expect.any(Number), others: 0 });
  expect((await world.get('workflows/runs/wfr_none/explain')).status).toBe(404);
  expect((await events()).slice(-3)).toEqual(['RUN_CANCELED', 'CANCEL_REQUESTED s1', 'CANCELED s1']);
});

it('shows what a step returned as it was sent when it is no text, of whatever depth', async () => {
  const deep = `${'['.repeat(40_000)}${']'.repeat(40_000)}`;
  await start('wfr_a');
  await send('wfr_a', [
    { body: step(1, { out: { a: [1] } }) },
    { body: JSON.stringify(step(2, { out: 0 })).replace('"out":0', `"out":${deep}`) },
    { body: step(3, { out: null }) },
  ]);
  const [run] = await runs();
  expect(run.steps.map(({ steps }: Json) => steps[0].out).slice(1, 4)).toEqual(['{"a":[1]}', deep, undefined]);
  expect(await events('state=CREATED')).toHaveLength(4);
  expect((await world.get('workflows/runs/wfr_a/explain')).status).toBe(200);
});
