/** The JSON of runs and their events (contract W 18, 20). */
import { Buffer } from 'node:buffer';
import { createHash } from 'node:crypto';
import { Value } from '@sinclair/typebox/value';
import { expect, test } from 'vitest';
import { RunEventsSchema, RunListSchema, runEventView, runLogView } from '../../src/api/runs/run-log-views.ts';
import type { RunEvent } from '../../src/engine/runs/logs/log-store.ts';
import type { DeliveryProgress, RunHistory } from '../../src/workflow/history.ts';
import { runLogOf } from '../../src/workflow/run-log.ts';
import {
  CANCELED,
  DELIVERED,
  FAILED,
  failure,
  IN_FLIGHT,
  Journal,
  NOW,
  RETRYING,
  T0,
  WORKFLOW_URL,
} from '../workflow/histories.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests read responses whose shape they assert
type Json = any;

/** As a client reads it, held against the schema. */
function shown(history: RunHistory, bodyBytesMax?: number): Json {
  const run = JSON.parse(JSON.stringify(runLogView(runLogOf(history, NOW), bodyBytesMax)));
  expect([...Value.Errors(RunListSchema, { runs: [run] })]).toEqual([]);
  return run;
}

function shownEvent(event: RunEvent): Json {
  const view = JSON.parse(JSON.stringify(runEventView(event)));
  expect([...Value.Errors(RunEventsSchema, { events: [view] })]).toEqual([]);
  return view;
}

const RUN = { id: 'wfr_a', url: WORKFLOW_URL, createdAtMs: T0 };

function hashOf(text: string): string {
  return `REDACTED:${createHash('sha256').update(text).digest('hex')}`;
}

test('a run whose first delivery is retried looks as clients expect it', () => {
  expect(shown(new Journal().initial(RETRYING).history())).toEqual({
    workflowRunId: 'wfr_a',
    workflowUrl: WORKFLOW_URL,
    workflowState: 'RUN_STARTED',
    workflowRunCreatedAt: T0,
    steps: [
      {
        type: 'sequential',
        steps: [
          {
            ...{ stepName: 'init', stepType: 'Initial', callType: 'step', messageId: 'msg_1', concurrent: 1 },
            ...{ createdAt: T0 + 1, state: 'STEP_SUCCESS', out: 'payload', retries: 3, retryDelay: expect.any(String) },
            headers: { 'Content-Type': ['application/json'] },
          },
        ],
      },
      {
        type: 'next',
        steps: [
          {
            ...{ messageId: 'msg_1', state: 'STEP_RETRY', retries: 3, retryDelay: expect.any(String) },
            nextDeliveryTime: NOW + 5_000,
            errors: [
              {
                ...{ error: '500 Internal Server Error', body: '{"error":"Error"}', headers: {}, status: 500 },
                time: T0 + 10,
              },
            ],
          },
        ],
      },
    ],
  });
});

test('without retries no delay is shown; a number of retries that is 0 is', () => {
  const journal = new Journal().initial(DELIVERED, { settings: { maxRetries: 0 } });
  const [{ steps }] = shown(journal.history()).steps;
  expect(steps[0]).toMatchObject({ retries: 0 });
  expect(steps[0]).not.toHaveProperty('retryDelay');
});

test('a run that succeeded shows what it returned, verbatim', () => {
  const run = shown(new Journal().initial().history('RUN_SUCCESS', { response: Buffer.from('"x"') }));
  expect(run).toMatchObject({
    workflowState: 'RUN_SUCCESS',
    workflowRunResponse: '"x"',
    workflowRunCompletedAt: NOW - 1_000,
  });
  expect(shown(new Journal().initial().history('RUN_SUCCESS'))).not.toHaveProperty('workflowRunResponse');
});

test('labels, the flow-control key and the invoker of a run are shown', () => {
  const history = new Journal().initial().history('RUN_STARTED', {
    invoker: { id: 'wfr_p', url: 'https://app.example/parent', createdAtMs: T0 - 5 },
    callerIp: '1.2.3.4',
  });
  history.run.config = { ...history.run.config, labels: ['a', 'b'], flowControl: { key: 'k', periodS: 1 } };
  expect(shown(history)).toMatchObject({
    label: 'a',
    labels: ['a', 'b'],
    flowControlKey: 'k',
    workflowRunCallerIp: '1.2.3.4',
    invoker: { workflowRunId: 'wfr_p', workflowUrl: 'https://app.example/parent', workflowRunCreatedAt: T0 - 5 },
  });
});

test('a failed run shows the response that failed it, and the outcome of its failure function', () => {
  const message = new Journal().initial().entries[0]?.message;
  if (!message) throw new Error('there is no message');
  const course: DeliveryProgress = {
    ...{ end: 'delivered', failures: [failure('500 Internal Server Error', 500)] },
    response: { status: 200, header: { 'X-A': ['1'] }, body: Buffer.from('{"result":1}') },
  };
  const history = new Journal().initial(FAILED).history('RUN_FAILED', { dlqId: '7-1' });
  expect(shown({ ...history, failureFunction: { ...course, state: 'success', message } })).toMatchObject({
    dlqId: '7-1',
    failureFunction: {
      ...{ messageId: 'msg_1', url: WORKFLOW_URL, state: 'CALLBACK_SUCCESS', dlqId: '7-1', maxRetries: 3 },
      ...{ failStatus: 489, failResponse: '{"error":"Error"}', failHeaders: {} },
      ...{ responseStatus: 200, responseBody: '{"result":1}', responseHeaders: { 'X-A': ['1'] } },
      errors: [{ status: 500 }],
    },
  });
});

test('a successful response that is an error has an error text', () => {
  const told = { ...failure('detected a non-workflow destination', 200), atMs: T0 };
  const run = shown(new Journal().initial({ end: 'failed', failures: [told] }).history('RUN_FAILED'));
  expect(run.steps[1].steps[0].errors[0]).toMatchObject({ error: 'detected a non-workflow destination', status: 200 });
});

test('an attempt without a response has an error without a status', () => {
  const failures = [{ atMs: T0, error: 'connection refused' }];
  const run = shown(new Journal().initial({ end: 'failed', failures }).history('RUN_FAILED'));
  expect(run.steps[1].steps[0].errors).toEqual([{ error: 'connection refused', body: '', headers: {}, time: T0 }]);
});

test('calls, waits and invocations have the fields of their kind, sleeps are in milliseconds', () => {
  const child = new Journal().initial().entries[0]?.message;
  const journal = new Journal()
    .initial()
    .call(1, FAILED)
    .callback(503, DELIVERED)
    .step(1, { stepType: 'Call' })
    .wait(2)
    .step(2, { stepType: 'Wait', waitTimeout: true, out: undefined })
    .step(3, { stepType: 'SleepUntil', sleepUntil: T0 / 1000, out: undefined })
    .invoke(4, {}, child);
  const [, call, wait, sleep, invoked] = shown(journal.history()).steps.map(({ steps }: Json) => steps[0]);
  expect(call).toMatchObject({
    ...{
      callUrl: 'https://third.example/api',
      callMethod: 'PUT',
      callHeaders: { 'X-Sent': ['1'] },
      callBody: 'question',
    },
    ...{ callResponseStatus: 503, callResponseBody: 'answer', callResponseHeaders: { 'X-Got': ['2'] } },
  });
  expect(wait).toMatchObject({
    ...{ waitEventId: 'e1', waitTimeoutDuration: '1m', waitTimeoutDeadline: T0 + 60_000, waitTimeout: true },
  });
  expect(sleep).toMatchObject({ stepId: 3, sleepUntil: T0 });
  expect(invoked).toMatchObject({
    ...{ invokedWorkflowRunId: 'wfr_child', invokedWorkflowUrl: 'https://app.example/child' },
    ...{ invokedWorkflowCreatedAt: T0 + 50, invokedWorkflowRunBody: 'payload' },
    invokedWorkflowRunHeaders: { 'Content-Type': ['application/json'] },
  });
});

test('what a run redacts is shown nowhere of it', () => {
  const child = new Journal().initial().entries[0]?.message;
  const journal = new Journal()
    .initial(RETRYING)
    .call(1, DELIVERED)
    .callback(200, DELIVERED)
    .step(1)
    .invoke(2, {}, child);
  const history = journal.history('RUN_STARTED', { response: Buffer.from('"secret"') });
  history.run.config = { ...history.run.config, redact: { body: true, headers: ['X-Sent'] } };
  const text = JSON.stringify(shown(history));
  for (const secret of ['payload', 'question', 'answer', 'secret', 'r1', 'Error\\\\"'])
    expect(text).not.toContain(`"${secret}`);
  expect(text).toContain(hashOf('payload'));
  expect(text).toContain(hashOf('question'));
  expect(text).toContain(hashOf('answer'));
  expect(text).toContain(hashOf('"r1"'));
  expect(text).toContain(hashOf('{"error":"Error"}'));
  expect(text).toContain(hashOf('1'));
});

test.for<[bytesMax: number | undefined, body: string, expected: string | undefined]>([
  [undefined, 'long enough', 'long enough'],
  [4, 'long enough', 'long'],
  [0, 'long enough', undefined],
  [2, 'aé', 'a'],
  [3, 'aé', 'aé'],
  [4, 'a😀b', 'a'],
])('of a body %s bytes are shown: %s', ([bytesMax, body, expected]) => {
  const journal = new Journal().add('initial', '0', body);
  expect(shown(journal.history(), bytesMax).steps[0].steps[0].out).toBe(expected);
});

test('a body that is no text is shown as base64', () => {
  const journal = new Journal().initial(DELIVERED, { message: { body: Buffer.from([0xff, 0xfe]) } });
  expect(shown(journal.history()).steps[0].steps[0].out).toBe('//4=');
});

test('a cancelled run keeps what was next', () => {
  const run = shown(new Journal().initial({ ...CANCELED, failures: RETRYING.failures }).history('RUN_CANCELED'));
  expect(run.steps[1]).toMatchObject({ type: 'next', steps: [{ state: 'STEP_CANCELED', errors: [{ status: 500 }] }] });
});

test('an event of a message tells of its step, one of the run does not', () => {
  const [entry] = new Journal().step(1, {}, IN_FLIGHT).entries;
  if (!entry) throw new Error('there is no entry');
  const message = { ...entry.message, key: entry.key };
  expect(shownEvent({ atMs: T0 + 9, state: 'CREATED', run: RUN, message })).toEqual({
    ...{ time: T0 + 9, state: 'CREATED', workflowRunId: 'wfr_a', workflowUrl: WORKFLOW_URL, workflowCreatedAt: T0 },
    nextDeliveryTime: T0 + 1,
    stepInfo: {
      ...{ stepId: 1, stepName: 's1', stepType: 'Run', callType: 'step', messageId: 'msg_1', concurrent: 1 },
      ...{ createdAt: T0 + 1, out: '"r1"', retries: 3, retryDelay: expect.any(String) },
      headers: { 'Content-Type': ['application/json'] },
    },
  });
  const invoker = { id: 'wfr_p', url: WORKFLOW_URL, createdAtMs: T0 - 1 };
  expect(shownEvent({ atMs: T0, state: 'RUN_STARTED', run: { ...RUN, invoker, callerIp: '1.2.3.4' } })).toEqual({
    ...{ time: T0, state: 'RUN_STARTED', workflowRunId: 'wfr_a', workflowUrl: WORKFLOW_URL, workflowCreatedAt: T0 },
    ...{ invokerWorkflowRunId: 'wfr_p', invokerWorkflowUrl: WORKFLOW_URL, invokerWorkflowCreatedAt: T0 - 1 },
    callerIp: '1.2.3.4',
  });
});

test('an ERROR entry shows the request and the response, as far as the run shows them', () => {
  const [entry] = new Journal().step(1, {}, IN_FLIGHT, { message: { header: { 'X-Secret': ['s'] } } }).entries;
  if (!entry) throw new Error('there is no entry');
  const { response } = failure('', 500, { 'X-Secret': ['t'] });
  const event: RunEvent = {
    ...{ atMs: T0, state: 'ERROR', run: { ...RUN, config: new Journal().history().run.config } },
    message: { ...entry.message, key: entry.key },
    detail: { error: 'the endpoint responded with status 500', ...(response && { response }) },
  };
  expect(shownEvent(event)).toMatchObject({
    ...{ error: '500 Internal Server Error', responseStatus: 500, responseBody: '{"error":"Error"}' },
    ...{ headers: { 'X-Secret': ['s'] }, responseHeaders: { 'X-Secret': ['t'] } },
  });
  if (event.run.config) event.run.config = { ...event.run.config, redact: { body: true, headers: 'all' } };
  expect(shownEvent(event)).toMatchObject({
    ...{ responseBody: hashOf('{"error":"Error"}'), stepInfo: { out: hashOf('"r1"') } },
    ...{ headers: { 'X-Secret': [hashOf('s')] }, responseHeaders: { 'X-Secret': [hashOf('t')] } },
  });
});

test('a truncated response is marked as such, in an additional member', () => {
  const told = failure('the endpoint responded with status 500; of its body only the first 9 bytes are kept', 500);
  const run = shown(new Journal().initial({ end: 'failed', failures: [told] }).history('RUN_FAILED'));
  expect(run.steps[1].steps[0].errors[0].error).toBe(
    '500 Internal Server Error; of its body only the first 9 bytes are kept',
  );
});

test('a long response that failed a run is shown completely once', () => {
  const told = failure('', 500);
  if (told.response) told.response.body = Buffer.alloc(100_000, 'x');
  const journal = new Journal().initial({ end: 'failed', failures: [told] });
  const [entry] = journal.entries;
  if (!entry) throw new Error('there is no entry');
  const failureFunction = { state: 'inProgress' as const, message: entry.message, failures: [] };
  const run = shown({ ...journal.history('RUN_FAILED'), failureFunction });
  expect(run.steps[1].steps[0].errors[0].body).toHaveLength(100_000);
  expect(run.failureFunction.failResponse).toBe('x'.repeat(64 * 1024));
});
