/** Sleeps, and calls of others (contract W 26.72 to 26.80, 14.3, 14.5). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';
import type { Json } from '../support/subject.ts';
import { BROKEN, base64, type Delivery, fromBase64, runStep, startAndDeliver } from '../support/workflow.ts';

function resultOf({ body }: Delivery): Json {
  return JSON.parse(body.toString());
}

export const calls: Section = {
  title: 'Sleep, call',
  statements: [
    statement('W72', 'A sleep is in the journal immediately, and delivered when it is over.', async (server) => {
      const run = await startAndDeliver(server);
      const step = { stepId: 1, stepName: 's', stepType: 'SleepFor', sleepFor: 2, concurrent: 1 };
      await run.step(step, { 'upstash-delay': '2s' });
      expect((await run.journal()).map(({ text }) => text)).toEqual(['{"a":1}', JSON.stringify(step)]);
      server.clock.advance(1999);
      await run.lastDelivery(1);
      server.clock.advance(1);
      expect((await run.delivery(2)).step).toEqual(step);

      const sleepUntil = Math.ceil(server.clock.nowMs() / 1000) + 100;
      const until = { stepId: 2, stepName: 'u', stepType: 'SleepUntil', sleepUntil, concurrent: 1 };
      await run.step(until, { 'upstash-not-before': String(sleepUntil) });
      await run.lastDelivery(2);
      server.clock.advanceTo(sleepUntil * 1000);
      expect((await run.delivery(3)).step).toEqual(until);
    }),

    statement(
      'W73',
      'A call is sent as the user wrote it, and its outcome is delivered to the run.',
      async (server) => {
        const answer = server.endpoint.hold('/third');
        const run = await startAndDeliver(server);
        const headers = { 'upstash-forward-x-call': 'call', 'content-type': 'text/plain' };
        const messageId = await run.call('/third?a=b', { method: 'PUT', body: 'grün', headers });
        const request = await server.endpoint.arrival('/third');
        expect([request.method, request.target, request.body.toString()]).toEqual(['PUT', '/third?a=b', 'grün']);
        expect(request.headers).toMatchObject({
          'x-call': 'call',
          'content-type': 'text/plain',
          'upstash-message-id': messageId,
          'upstash-retried': '0',
        });
        // A workflow that is called like this must take it for a first invocation.
        expect(Object.keys(request.headers).filter((name) => name.startsWith('upstash-workflow'))).toEqual([]);
        await run.lastDelivery(1);
        answer({ status: 201, body: 'made' });
        expect(resultOf(await run.delivery(2))).toMatchObject({ status: 201, body: base64('made') });
        await run.step(runStep(1));
        expect((await run.delivery(3)).entries.map(({ callType }) => callType)).toEqual([
          'step',
          'toCallback',
          'fromCallback',
          'step',
        ]);
      },
    ),

    statement('W74', 'The headers of the result identify the step, and its JSON has the outcome.', async (server) => {
      server.endpoint.replies('/third', { status: 201, headers: { 'content-type': 'application/json' }, body: '{}' });
      const run = await startAndDeliver(server);
      const sourceMessageId = await run.call('/third', {
        stepId: 3,
        method: 'POST',
        body: 'question',
        headers: {
          'upstash-callback-forward-upstash-workflow-stepname': 'call-3',
          'upstash-callback-forward-upstash-workflow-invoke-count': '2',
        },
      });
      const delivery = await run.delivery(2);
      expect(delivery.headers).toMatchObject({
        'content-type': 'application/json',
        'upstash-workflow-callback': 'true',
        'upstash-workflow-stepid': '3',
        'upstash-workflow-stepname': 'call-3',
        'upstash-workflow-steptype': 'Call',
        'upstash-workflow-concurrent': '1',
        'upstash-workflow-contenttype': 'application/json',
        'upstash-workflow-invoke-count': '2',
        'upstash-workflow-runid': run.id,
        'upstash-workflow-url': run.url,
        'upstash-workflow-init': 'false',
        'upstash-workflow-calltype': 'fromCallback',
        'upstash-workflow-createdat': String(await run.createdAtMs()),
      });
      expect(delivery.headers).not.toHaveProperty('upstash-workflow-is-failure');
      expect(resultOf(delivery)).toMatchObject({
        status: 201,
        header: { 'Content-Type': ['application/json'] },
        body: base64('{}'),
        sourceMessageId,
        url: server.destination('/third'),
        method: 'POST',
        sourceBody: base64('question'),
        createdAt: server.clock.nowMs(),
      });
    }),

    statement('W75', 'Its header names are canonical, and values are arrays.', async (server) => {
      const headers = { 'get-header': 'a', 'content-type': 'text/plain', 'x-many': ['1', '2'] };
      server.endpoint.replies('/third', { headers });
      const run = await startAndDeliver(server);
      await run.call('/third');
      const expected = { 'Get-Header': ['a'], 'Content-Type': ['text/plain'], 'X-Many': ['1', '2'] };
      expect(resultOf(await run.delivery(2)).header).toMatchObject(expected);
    }),

    statement('W76', 'A failing call is retried as often as it asks for, and reported once.', async (server) => {
      server.endpoint.replies('/third', { status: 401, body: 'who are you' });
      const run = await startAndDeliver(server);
      await run.call('/third', { headers: { 'upstash-retries': '1', 'upstash-retry-delay': '1000' } });
      await run.logged('RETRY');
      await run.lastDelivery(1);
      server.clock.advance(1000);
      const expected = { status: 401, body: base64('who are you'), retried: 1, maxRetries: 1 };
      expect(resultOf(await run.delivery(2))).toMatchObject(expected);
      await run.lastDelivery(2);
      expect(server.endpoint.to('/third')).toHaveLength(2);
    }),

    statement(
      'W77',
      'No outcome of a call fails the run, not even a broken connection or an unreachable target.',
      async (server) => {
        const run = await startAndDeliver(server);
        let nth = 1;
        for (const status of [400, 404, 500, 503]) {
          const path = `/third-${status}`;
          server.endpoint.replies(path, { status });
          await run.call(path, { stepId: nth });
          expect(resultOf(await run.delivery(++nth)).status).toBe(status);
        }
        // With retries left: what the library would take for a report in between (contract W 14.5).
        server.endpoint.replies('/early', { status: 489, headers: { 'Upstash-NonRetryable-Error': 'true' } });
        await run.call('/early', { stepId: nth, headers: { 'upstash-retries': '3' } });
        const early = resultOf(await run.delivery(++nth));
        expect(early.status).toBe(489);
        expect(early.retried ?? 0).toBe(early.maxRetries);
        await run.call('http://127.0.0.1:1/nobody', { stepId: nth });
        const nobody = resultOf(await run.delivery(++nth));
        expect([nobody.status, typeof nobody.body]).toEqual([502, 'string']);
        expect((await run.shown()).workflowState).toBe('RUN_STARTED');
        expect(await server.get('/v2/workflows/dlq')).toEqual({ messages: [] });
      },
    ),

    statement('W78', 'Any status is passed on, with or without a body.', async (server) => {
      const run = await startAndDeliver(server);
      for (const [index, status] of [200, 204, 300, 302].entries()) {
        const path = `/third-${status}`;
        server.endpoint.replies(path, { status, headers: { location: '/elsewhere' } });
        await run.call(path, { stepId: index + 1 });
        const result = resultOf(await run.delivery(index + 2));
        expect([result.status, result.body ?? '']).toEqual([status, '']);
      }
      await server.quiet();
      expect(server.endpoint.to('/elsewhere')).toEqual([]);
    }),

    statement('W79', 'A large result is left out to be fetched, under the id of its delivery.', async (server) => {
      const body = 'x'.repeat(4 * 1024 * 1024);
      server.endpoint.replies('/third', { body });
      const run = await startAndDeliver(server);
      await run.call('/third');
      const delivery = await run.delivery(2);
      expect([delivery.body.length, delivery.headers['upstash-workflow-callback']]).toEqual([0, 'true']);
      const entry = (await run.journal()).find(({ messageId }) => messageId === delivery.messageId);
      expect(entry?.callType).toBe('fromCallback');
      expect(fromBase64(JSON.parse(entry?.text ?? '{}').body) === body).toBe(true);
    }),

    statement('W80', 'A result that cannot be delivered fails the run.', async (server) => {
      const run = await startAndDeliver(server, {
        failureUrl: server.destination('/failure'),
        headers: { 'upstash-retries': '0' },
      });
      server.endpoint.replies(run.path, BROKEN);
      await run.call('/third');
      await run.logged('RUN_FAILED');
      const { status, url } = JSON.parse((await server.endpoint.arrival('/failure')).body.toString());
      expect([status, url]).toEqual([500, run.url]);
      await run.lastDelivery(2);
    }),
  ],
};

export const exactSleeps: Section = {
  title: 'Exact sleeps',
  statements: [
    statement(
      'W111',
      'A sleep until a time with a fraction of a second never ends early, however the header is rounded.',
      async (server) => {
        const run = await startAndDeliver(server);
        const wholeS = Math.ceil(server.clock.nowMs() / 1000) + 10;
        const until = { stepId: 1, stepName: 'u', stepType: 'SleepUntil', sleepUntil: wholeS + 0.4, concurrent: 1 };
        await run.step(until, { 'upstash-not-before': String(wholeS) });
        server.clock.advanceTo(wholeS * 1000 + 399);
        await run.lastDelivery(1);
        server.clock.advance(1);
        expect((await run.delivery(2)).step).toEqual(until);

        const plan = (targetStep: number, sleepUntil: number): Json =>
          run.stepItems([{ stepId: 0, stepType: 'SleepUntil', sleepUntil, concurrent: 2, targetStep }], {
            'upstash-not-before': String(Math.round(sleepUntil)),
          })[0];
        const [roundedDown, roundedUp] = [wholeS + 20.25, wholeS + 29.75];
        await server.post('/v2/batch', [plan(2, roundedDown), plan(3, roundedUp)]);
        server.clock.advanceTo(roundedDown * 1000 - 1);
        await run.lastDelivery(2);
        server.clock.advance(1);
        expect((await run.delivery(3)).step).toMatchObject({ targetStep: 2 });
        server.clock.advanceTo(Math.round(roundedUp) * 1000 - 1);
        await run.lastDelivery(3);
        server.clock.advance(1);
        expect((await run.delivery(4)).step).toMatchObject({ targetStep: 3 });
      },
    ),
  ],
};
