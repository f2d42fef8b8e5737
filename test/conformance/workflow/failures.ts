/** The effect of a failed delivery on its run (contract W 26.49 to 26.62, 10 to 13). */
import { expect } from 'vitest';
import type { Millis } from '../../../src/engine/model.ts';
import { eventually } from '../../support/eventually.ts';
import type { Reply } from '../support/endpoint.ts';
import { type Section, statement } from '../support/statement.ts';
import type { Json, Subject } from '../support/subject.ts';
import {
  BROKEN,
  base64,
  DONE,
  deliveryOf,
  FEATURES,
  fail,
  fromBase64,
  type Headers,
  OLD_FEATURES,
  Run,
  replyOf,
  runStep,
  start,
  startAndDeliver,
} from '../support/workflow.ts';

/** Starts a run whose endpoint answers like this, and answers how long after each failure it is tried again. */
async function delays(server: Subject, reply: Reply, headers: Headers = {}, retries = 1): Promise<Millis[]> {
  const path = server.endpoint.newPath();
  server.endpoint.replies(path, reply);
  const run = await start(server, { path, headers: { ...headers, 'upstash-retries': String(retries) } });
  const delays: Millis[] = [];
  for (let nth = 1; nth <= retries; nth += 1) {
    const { time, nextDeliveryTime } = await run.logged('RETRY', nth);
    delays.push(nextDeliveryTime - time);
    server.clock.advanceTo(nextDeliveryTime);
    const { headers, messageId } = await run.delivery(nth + 1);
    expect([headers['upstash-retried'], messageId]).toEqual([String(nth), run.messageId]);
  }
  return delays;
}

/** A run by REST that fails at its first delivery; its second request is the failure callback. */
async function failByRest(server: Subject): Promise<Run> {
  const path = server.endpoint.newPath();
  server.endpoint.replies(path, BROKEN, DONE);
  const target = `/v2/trigger/${server.destination(path)}`;
  const { workflowRunId: id } = await server.post(target, undefined, { headers: { 'Upstash-Retries': '0' } });
  const { messageId } = deliveryOf(await server.endpoint.arrival(path));
  return new Run(server, { id, path, features: FEATURES }, messageId);
}

/** The one failure callback to `path`, parsed. */
async function failureOf(server: Subject, path = '/failure'): Promise<Json> {
  return JSON.parse((await server.endpoint.arrival(path)).body.toString());
}

export const failures: Section = {
  title: 'Failures and retries',
  statements: [
    statement('W49', 'By default a failed delivery is repeated after 12 s.', async (server) => {
      expect(await delays(server, BROKEN)).toEqual([expect.closeTo(12_182, -3)]);
    }),

    statement('W50', 'The delay of retries can be set, and can use the number of previous retries.', async (server) => {
      expect(await delays(server, BROKEN, { 'upstash-retry-delay': '1000' })).toEqual([1000]);
      const growing = { 'upstash-retry-delay': '1000 * (1 + retried)' };
      expect(await delays(server, BROKEN, growing, 3)).toEqual([1000, 2000, 3000]);
    }),

    statement('W51', 'The response may set the next attempt, in seconds or as a duration.', async (server) => {
      for (const [value, ms] of [
        ['3', 3000],
        ['10s', 10_000],
        ['5m', 300_000],
      ] as const) {
        expect(await delays(server, replyOf(429, '{}', { 'Retry-After': value })), value).toEqual([ms]);
      }
    }),

    statement('W52', 'Status 489 with the header of its kind fails the run immediately.', async (server) => {
      const body = '{"error":"WorkflowNonRetryableError","message":"no","stack":""}';
      const path = '/wf';
      server.endpoint.replies(path, replyOf(489, body, { 'Upstash-NonRetryable-Error': 'true' }));
      const run = await start(server, { path, failureUrl: server.destination('/failure') });
      await run.logged('RUN_FAILED');
      await run.lastDelivery(1);
      expect(await failureOf(server)).toMatchObject({ status: 489, body: base64(body) });
    }),

    statement('W53', 'Status 400 is retried like 500, and so is 489 alone.', async (server) => {
      for (const status of [400, 489]) {
        const headers = { 'upstash-retry-delay': '1000' };
        expect(await delays(server, replyOf(status, '{"message":"no"}'), headers), `${status}`).toEqual([1000]);
      }
    }),

    statement(
      'W54',
      'After the last retry the run has failed and is in the DLQ, and its failure callback is sent.',
      async (server) => {
        server.endpoint.replies('/wf', BROKEN);
        const run = await start(server, {
          path: '/wf',
          failureUrl: server.destination('/failure'),
          headers: { 'upstash-retries': '1', 'upstash-retry-delay': '1000' },
        });
        await run.logged('RETRY');
        server.clock.advance(1000);
        const { dlqId } = await run.reached('RUN_FAILED');
        expect(dlqId).toMatch(/^\d+-\d+$/);
        expect((await server.get(`/v2/workflows/dlq/${dlqId}`)).workflowRunId).toBe(run.id);
        await server.endpoint.arrival('/failure');
        await run.lastDelivery(2);
        expect(server.endpoint.to('/failure')).toHaveLength(1);
        // One that a library begins when it is called names nobody, and not its own URL either.
        const unnamed = await fail(server, { failureUrl: null });
        await unnamed.lastDelivery(1);
        expect(await unnamed.shown()).not.toHaveProperty('failureFunction');
      },
    ),

    statement('W55', 'The failure callback is marked as such, names its run, and has no version.', async (server) => {
      const rest = await failByRest(server);
      const run = await fail(server, { failureUrl: server.destination('/failure') });
      for (const [id, url, { headers }] of [
        [run.id, run.url, await server.endpoint.arrival('/failure')],
        [rest.id, rest.url, await rest.delivery(2)],
      ] as const) {
        expect(headers).toMatchObject({
          'content-type': 'application/json',
          'upstash-workflow-is-failure': 'true',
          'upstash-workflow-failure-callback': 'true',
          'upstash-workflow-runid': id,
          'upstash-workflow-url': url,
          'upstash-workflow-init': 'false',
          'upstash-workflow-calltype': 'failureCall',
          'upstash-workflow-createdat': String(server.clock.nowMs()),
          'upstash-retried': '0',
        });
        expect(headers).not.toHaveProperty('upstash-workflow-sdk-version');
        expect(headers).not.toHaveProperty('upstash-workflow-callback');
      }
    }),

    statement(
      'W56',
      'Its body describes the failed delivery, with all required members even if they are empty.',
      async (server) => {
        const headers = { 'X-Answer': 'a' };
        server.endpoint.replies('/wf', replyOf(500, 'broken', headers));
        const run = await fail(server, { path: '/wf', failureUrl: server.destination('/failure'), payload: 'payload' });
        const { dlqId } = await run.buried();
        expect(await failureOf(server)).toMatchObject({
          status: 500,
          header: { 'X-Answer': ['a'], 'Upstash-Workflow-Sdk-Version': ['1'] },
          body: base64('broken'),
          retried: 0,
          maxRetries: 0,
          dlqId,
          workflowRunId: run.id,
          workflowCreatedAt: server.clock.nowMs(),
          url: run.url,
          method: 'POST',
          sourceMessageId: run.messageId,
          sourceBody: base64('payload'),
          createdAt: server.clock.nowMs(),
          notBefore: server.clock.nowMs(),
        });
        server.endpoint.replies('/empty', replyOf(500, ''));
        await fail(server, { path: '/empty', failureUrl: server.destination('/failure-2'), payload: '' });
        const empty = await failureOf(server, '/failure-2');
        expect(empty).toMatchObject({ body: '', sourceBody: '', header: expect.any(Object) });
        const failureUrl = server.destination('/failure-3');
        const nobody = await fail(server, { id: 'wfr_nobody', path: 'http://127.0.0.1:1/nobody', failureUrl });
        const unanswered = { status: 0, header: {}, body: '', url: nobody.url, workflowRunId: 'wfr_nobody' };
        expect(await failureOf(server, '/failure-3')).toMatchObject(unanswered);
      },
    ),

    statement(
      'W57',
      'A failing response arrives complete, even if it is larger than the maximum of a message.',
      async (server) => {
        // An error of 5 MiB is in its message and in its stack.
        const body = 'x'.repeat(10.5 * 1024 * 1024);
        server.endpoint.replies('/wf', replyOf(500, body));
        await fail(server, { path: '/wf', failureUrl: server.destination('/failure') });
        const failure = await failureOf(server);
        expect(fromBase64(failure.body) === body).toBe(true);
      },
    ),

    statement(
      'W58',
      'A library that does not request the payload gets the journal that was delivered.',
      async (server) => {
        const run = await fail(server, {
          features: FEATURES.replace('InitialBody,', ''),
          failureUrl: server.destination('/failure'),
        });
        const { sourceBody } = await failureOf(server);
        expect(fromBase64(sourceBody)).toBe((await run.delivery(1)).body.toString());
      },
    ),

    statement('W59', 'A failure callback has its own retries, and can fail itself.', async (server) => {
      server.endpoint.replies('/failure', { status: 503, body: 'closed' });
      const run = await fail(server, {
        failureUrl: server.destination('/failure'),
        headers: { 'upstash-failure-callback-retries': '1', 'upstash-failure-callback-retry-delay': '1000' },
      });
      await run.told('CALLBACK_INPROGRESS');
      await eventually('its failed attempt', async () => (await run.shown()).failureFunction.errors?.length === 1);
      server.clock.advance(1000);
      const shown = await run.told('CALLBACK_FAIL');
      expect(shown.workflowState).toBe('RUN_FAILED');
      await server.quiet();
      expect(server.endpoint.to('/failure')).toHaveLength(2);
    }),

    statement(
      'W60',
      'Its success is recorded with the response, but not if there is no failure function.',
      async (server) => {
        server.endpoint.replies('/failure', { body: '{"result":"told"}' });
        const run = await fail(server, { failureUrl: server.destination('/failure') });
        const { failureFunction } = await run.told('CALLBACK_SUCCESS');
        expect(failureFunction).toMatchObject({
          messageId: expect.stringMatching(/^msg_/),
          url: server.destination('/failure'),
          failStatus: 500,
          failResponse: BROKEN.body,
          responseStatus: 200,
          responseBody: '{"result":"told"}',
        });
        const path = server.endpoint.newPath();
        server.endpoint.replies(
          path,
          BROKEN,
          replyOf(200, '', { 'Upstash-Workflow-Failure-Callback-Notfound': 'true' }),
        );
        const silent = await fail(server, { path });
        await silent.delivery(2);
        await eventually('its answer', async () => (await silent.shown()).failureFunction === undefined);
      },
    ),

    statement('W61', 'More retries of a step than the server allows get 412.', async (server) => {
      const run = await startAndDeliver(server);
      const ask = async (items: Json[]) =>
        (await server.ask('POST', '/v2/batch', { body: JSON.stringify(items) })).status;
      const many = { 'upstash-retries': '1000000' };
      expect(await ask([run.callItem(server.destination('/third'), { headers: many })])).toBe(412);
      expect(await ask(run.stepItems([runStep(1)], many))).toBe(412);
      // 400 would say that the run is over.
      expect(await ask(run.stepItems([runStep(1)], { 'upstash-retries': '-1' }))).toBe(422);
      expect(await ask(run.stepItems([runStep(1)], { 'upstash-retry-delay': '1 +' }))).toBe(422);
      await run.lastDelivery(1);
      expect(server.endpoint.to('/third')).toEqual([]);
    }),

    statement('W62', 'A delivery is not repeated if its run ends first.', async (server) => {
      for (const end of ['finish', 'cancel'] as const) {
        const path = server.endpoint.newPath();
        const answer = server.endpoint.hold(path);
        const run = await startAndDeliver(server, { path, features: OLD_FEATURES });
        await run[end]();
        answer(BROKEN);
        server.clock.advance(86_400_000);
        await run.lastDelivery(1);
        await run.reached(end === 'finish' ? 'RUN_SUCCESS' : 'RUN_CANCELED');
      }
      const answer = server.endpoint.hold('/third');
      const caller = await startAndDeliver(server);
      await caller.call('/third');
      await server.endpoint.arrival('/third');
      await caller.cancel();
      answer({ body: 'too late' });
      await caller.lastDelivery(1);
    }),
  ],
};
