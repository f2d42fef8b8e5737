/** The logs of runs over HTTP, over the real engine and store (contract W 17.3, 18, 19.5). The tests are the client library. */
import { Value } from '@sinclair/typebox/value';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { RunEventsSchema, RunExplanationSchema, RunListSchema } from '../../src/api/runs/run-schemas.ts';
import { openTimedWorld, type TimedWorld, to, toOther } from './support/timed-world.ts';
import type { Json } from './support/world.ts';

let world: TimedWorld;
beforeEach(async () => {
  world = await openTimedWorld();
});
afterEach(() => world.close());

const PROJECT = 1;

/** Where runs are served: it answers with `status` after a second, whatever it is sent. */
const WORKFLOW = to('wf');

interface Sent {
  url?: string;
  body?: unknown;
  headers?: Record<string, string>;
}

/** Publishes into a run, as one batch; answers the ids of the messages. */
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

it('tells the story of a run of one step', async () => {
  const first = await start('wfr_a', { headers: { 'upstash-label': 'x' } });
  const [second = ''] = await send('wfr_a', [{ body: step(1) }]);
  expect(shapeOf((await runs())[0])).toEqual([
    'sequential init:STEP_SUCCESS',
    'sequential s1:STEP_SUCCESS',
    `next ${second}:STEP_PROGRESS`,
  ]);
  await world.clock.advanceBy(500);
  await world.engine.completeRun(PROJECT, 'wfr_a', Buffer.from('"done"'));
  await world.clock.advanceBy(1_000);
  const [run] = await runs();
  expect(run).toMatchObject({
    ...{ workflowRunId: 'wfr_a', workflowUrl: WORKFLOW, workflowState: 'RUN_SUCCESS', workflowRunResponse: '"done"' },
    ...{ label: 'x', labels: ['x'] },
  });
  expect(shapeOf(run)).toEqual(['sequential init:STEP_SUCCESS', 'sequential s1:STEP_SUCCESS']);
  expect(run.steps[0].steps[0]).toMatchObject({ messageId: first, out: 'payload' });
  expect(run.steps[1].steps[0]).toMatchObject({ messageId: second, out: '"r1"', stepId: 1, stepType: 'Run' });
  expect((await events()).filter((event) => !event.startsWith('DELIVERED'))).toEqual([
    ...['RUN_STARTED', 'CREATED init', 'ACTIVE init', 'CREATED s1', 'ACTIVE s1', 'RUN_SUCCESS'],
  ]);
});

it('shows parallel steps beside each other, sleeps and calls as what they are', async () => {
  await start('wfr_a');
  const plan = (targetStep: number) => ({
    stepId: 0,
    stepName: `s${targetStep}`,
    stepType: 'Run',
    concurrent: 3,
    targetStep,
  });
  await send('wfr_a', [
    { body: plan(1) },
    { body: { ...plan(2), stepType: 'SleepFor', sleepFor: 60 }, headers: { 'upstash-delay': '60s' } },
    { body: { ...plan(3), stepType: 'Call' } },
  ]);
  await send('wfr_a', [{ body: step(1, { concurrent: 3 }) }]);
  await send('wfr_a', [
    {
      url: toOther('third', 5, 503),
      body: 'question',
      headers: {
        ...{ 'upstash-workflow-calltype': 'toCallback', 'upstash-method': 'PUT', 'upstash-retries': '0' },
        ...{ 'upstash-callback': WORKFLOW, 'upstash-callback-workflow-calltype': 'fromCallback' },
        ...{ 'upstash-callback-workflow-runid': 'wfr_a', 'upstash-callback-workflow-url': WORKFLOW },
        ...{ 'upstash-callback-forward-upstash-workflow-stepid': '3' },
        ...{ 'upstash-callback-forward-upstash-workflow-stepname': 's3' },
        ...{ 'upstash-callback-forward-upstash-workflow-steptype': 'Call' },
        ...{ 'upstash-callback-forward-upstash-workflow-concurrent': '3' },
      },
    },
  ]);
  await world.clock.advanceBy(2_000);
  const [calling] = await runs();
  expect(shapeOf(calling)).toEqual([
    'sequential init:STEP_SUCCESS',
    'parallel s1:STEP_SUCCESS s2:STEP_PROGRESS s3:STEP_PROGRESS',
  ]);
  expect(calling.steps[1].steps[1]).toMatchObject({ sleepFor: 60_000, nextDeliveryTime: expect.any(Number) });
  expect(calling.steps[1].steps[2]).toMatchObject({ callType: 'toCallback', callMethod: 'PUT', callBody: 'question' });
  await world.clock.advanceBy(4_000);
  const [called] = await runs();
  expect(called.steps[1].steps[2]).toMatchObject({ callType: 'fromCallback', callResponseStatus: 503 });
  await send('wfr_a', [{ body: step(3, { stepType: 'Call', concurrent: 3 }) }]);
  const [done] = await runs();
  expect(shapeOf(done)[1]).toBe('parallel s1:STEP_SUCCESS s2:STEP_PROGRESS s3:STEP_SUCCESS');
});

it('shows why a run failed, and finds it by the state of its step', async () => {
  const url = to('wf', 1, 500);
  const messageId = await start('wfr_bad', { url, headers: { 'upstash-retries': '1', 'upstash-retry-delay': '1000' } });
  await start('wfr_good');
  await world.clock.advanceBy(1_500);
  const [retrying] = await runs('state=STEP_RETRY');
  expect(retrying).toMatchObject({ workflowRunId: 'wfr_bad', workflowState: 'RUN_STARTED' });
  expect(retrying.steps[1].steps[0]).toMatchObject({ messageId, state: 'STEP_RETRY', errors: [{ status: 500 }] });
  expect(await explained('wfr_bad')).toMatchObject({ reason: 'retrying', messageId });
  await world.clock.advanceBy(3_000);
  expect(await runs('state=STEP_RETRY')).toEqual([]);
  const [failed] = await runs('state=STEP_FAILED');
  expect(failed).toMatchObject({ workflowState: 'RUN_FAILED', dlqId: expect.stringMatching(/^\d+-\d+$/) });
  expect(failed.steps[1].steps[0].errors).toHaveLength(2);
  expect(failed.failureFunction).toMatchObject({ url, failStatus: 500, state: 'CALLBACK_INPROGRESS' });
  // What tells of the failure is a message of the run, and of none of its steps.
  expect(await events('workflowRunId=wfr_bad&state=ERROR,FAILED,RUN_FAILED')).toEqual([
    ...['ERROR init', 'ERROR init', 'FAILED init', 'RUN_FAILED', 'ERROR undefined'],
  ]);
});

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

it('finds a run by one of its messages, and cuts bodies where that is asked for', async () => {
  await start('wfr_other');
  await start('wfr_a');
  const [messageId] = await send('wfr_a', [{ body: step(1, { out: '"a long result"' }) }]);
  const [run, ...others] = await runs(`messageId=${messageId}&trimBody=3`);
  expect(others).toEqual([]);
  expect(run.steps.map(({ steps }: Json) => steps[0].out).slice(0, 2)).toEqual(['pay', '"a ']);
  const [slim] = await runs(`messageId=${messageId}&trimBody=0`);
  expect(JSON.stringify(slim)).not.toContain('"out"');
  expect(await events(`messageId=${messageId}`)).toEqual(['CREATED s1', 'ACTIVE s1']);
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

it('shows nothing of what a run redacts', async () => {
  await start('wfr_a', {
    headers: { 'upstash-redact-fields': 'body,header[X-Secret]', 'upstash-forward-x-secret': 'hush' },
  });
  await send('wfr_a', [{ body: step(1) }]);
  const texts = [await runs(), (await world.get('workflows/messageLogs')).json].map((json) => JSON.stringify(json));
  for (const text of texts) {
    expect(text).not.toMatch(/payload|hush|r1/);
    expect(text).toContain('REDACTED:');
  }
});

it('keeps events of runs out of the plain log, and of plain messages out of those of runs', async () => {
  await start('wfr_a');
  await world.publish(to('plain'));
  expect(new Set((await world.get('logs')).json.logs.map(({ url }: Json) => url))).toEqual(new Set([to('plain')]));
  expect(await events()).toEqual(['RUN_STARTED', 'CREATED init', 'ACTIVE init']);
});
