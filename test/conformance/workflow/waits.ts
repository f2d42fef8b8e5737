/** Runs that wait for events and webhooks (contract W 26.81 to 26.91, 14.6, 14.7, 14.9). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';
import { type Json, OTHER_TOKEN, type Subject } from '../support/subject.ts';
import { BROKEN, base64, DONE, fromBase64, type Run, startAndDeliver, waitStep } from '../support/workflow.ts';

async function waiters(server: Subject, eventId: string): Promise<Json[]> {
  return server.get(`/v2/waiters/${eventId}`);
}

/** The address that the library makes of a token. */
function hookOf({ server, id }: Run, eventId: string): string {
  const { UserID } = JSON.parse(fromBase64(server.token));
  return `/v2/workflows/hooks/${UserID}/${id}/${eventId}`;
}

/** What a hook was called with, as the step tells it. */
function requestIn(step: Json): Json {
  return JSON.parse(fromBase64(step.out));
}

export const waits: Section = {
  title: 'Wait, notify, webhook',
  statements: [
    statement('W81', 'A wait delivers nothing; its event lists the waiter.', async (server) => {
      const run = await startAndDeliver(server);
      expect(await waiters(server, 'e')).toEqual([]);
      const { status, json } = await run.wait('e', { timeout: '20s' });
      expect([status < 300, json]).toEqual([true, expect.objectContaining({ messageId: expect.any(String) })]);
      await run.lastDelivery(1);
      const [waiter, ...others] = await waiters(server, 'e');
      expect(others).toEqual([]);
      expect(waiter).toMatchObject({ url: run.url, timeoutUrl: run.url });
      const deadline = (server.clock.nowMs() + 20_000) / 1000;
      expect(Math.abs(waiter.deadline - deadline)).toBeLessThanOrEqual(1);
      expect(Number.isInteger(waiter.deadline)).toBe(true);
      for (const headers of [waiter.headers, waiter.timeoutHeaders]) {
        expect(headers).toMatchObject({ 'Upstash-Workflow-Runid': [run.id], 'Upstash-Workflow-Url': [run.url] });
      }
      expect(await server.get('/v2/waiters/e', { token: OTHER_TOKEN })).toEqual([]);
      expect((await run.states()).filter((state) => state === 'WAITER_ADDED')).toHaveLength(1);
      // A wait that is asked for again is the same.
      expect((await run.wait('e', { timeout: '20s' })).status).toBeLessThan(300);
      expect(await waiters(server, 'e')).toHaveLength(1);
    }),

    statement('W82', 'A notify returns the waiter and its message, which delivers the event.', async (server) => {
      const run = await startAndDeliver(server);
      const step = { ...waitStep(6), targetStep: 6, other: null };
      await run.wait('e', { step });
      const [waiter] = await waiters(server, 'e');
      expect(await server.post('/v2/notify/e', undefined, { token: OTHER_TOKEN })).toEqual([]);
      const { status, json } = await server.ask('POST', '/v2/notify/e', { body: '{"a":1}' });
      const { messageId } = await run.delivery(2);
      const notified = { waiter, messageId, workflowRunId: run.id, workflowCreatedAt: await run.createdAtMs() };
      expect([status, json]).toEqual([201, [expect.objectContaining(notified)]]);
      const delivery = await run.lastDelivery(2);
      expect(delivery.step).toEqual({ ...step, waitEventId: 'e', waitTimeout: false, out: base64('{"a":1}') });
      expect(delivery.headers).toMatchObject({
        'content-type': 'application/json',
        'upstash-workflow-runid': run.id,
        'upstash-workflow-init': 'false',
        'upstash-workflow-calltype': 'step',
        'upstash-workflow-sdk-version': '1',
      });
      expect(await waiters(server, 'e')).toEqual([]);
    }),

    statement('W83', 'An event is passed on byte for byte, and may be empty.', async (server) => {
      const run = await startAndDeliver(server);
      const events = ['plain text', '"grün"', '', Buffer.of(0xff, 0, 0xfe)];
      for (const [index, event] of events.entries()) {
        await run.wait('e', { step: waitStep(index + 1) });
        await server.post('/v2/notify/e', undefined, { body: event });
        const { step } = await run.delivery(index + 2);
        expect(step.out ?? '').toBe(Buffer.from(event).toString('base64'));
      }
    }),

    statement('W84', 'An event without a waiter gets [], and is lost.', async (server) => {
      const run = await startAndDeliver(server);
      expect(await server.post('/v2/notify/e', { a: 1 })).toEqual([]);
      await run.wait('e');
      await run.lastDelivery(1);
      expect(await waiters(server, 'e')).toHaveLength(1);
    }),

    statement(
      'W85',
      'An event for one run is kept for its next wait, and several are kept in order.',
      async (server) => {
        const run = await startAndDeliver(server);
        const target = `/v2/notify/${run.id}/e`;
        const run1 = { workflowRunId: run.id, workflowCreatedAt: await run.createdAtMs() };
        for (const body of ['first', 'second']) {
          const { status, json } = await server.ask('POST', target, { body });
          expect([status, json]).toEqual([201, run1]);
        }
        await run.wait('e', { step: waitStep(1) });
        expect((await run.lastDelivery(2)).step).toMatchObject({ stepId: 1, waitTimeout: false, out: base64('first') });
        await run.wait('e', { step: waitStep(2) });
        expect((await run.lastDelivery(3)).step).toMatchObject({ stepId: 2, out: base64('second') });
        await run.wait('e', { step: waitStep(3) });
        await run.lastDelivery(3);
        const other = await startAndDeliver(server);
        await other.wait('e');
        const notified = await server.post(target, undefined, { body: 'third' });
        const { messageId } = await run.delivery(4);
        expect(notified).toMatchObject({ ...run1, messageId, waiter: { url: run.url } });
        await other.lastDelivery(1);
        await run.finish();
        for (const id of [run.id, 'wfr_unknown']) {
          expect((await server.ask('POST', `/v2/notify/${id}/e`)).status, id).toBe(404);
        }
      },
    ),

    statement('W86', 'A wait without a notification is delivered as timed out at its deadline.', async (server) => {
      server.endpoint.replies('/timeout', DONE);
      const run = await startAndDeliver(server);
      const headers = { 'Upstash-Forward-X-Wait': 'w', 'Upstash-Forward-Upstash-Workflow-Invoke-Count': '2' };
      await run.wait('e', { timeout: '20s', timeoutPath: '/timeout', headers });
      server.clock.advance(19_999);
      await server.quiet();
      expect(server.endpoint.to('/timeout')).toEqual([]);
      server.clock.advance(1);
      const { body, headers: delivered } = await server.endpoint.arrival('/timeout');
      const step = JSON.parse(fromBase64(JSON.parse(body.toString())[1].body));
      expect(step).toEqual({ ...waitStep(1), waitEventId: 'e', waitTimeout: true });
      expect(delivered).toMatchObject({
        'x-wait': 'w',
        'upstash-workflow-invoke-count': '2',
        'upstash-workflow-runid': run.id,
        'upstash-workflow-sdk-version': '1',
      });
      expect(await waiters(server, 'e')).toEqual([]);
      expect(await server.post('/v2/notify/e')).toEqual([]);
      await run.lastDelivery(1);
    }),

    statement('W87', 'If a notify and the deadline coincide, one of the two is recorded.', async (server) => {
      const run = await startAndDeliver(server);
      await run.wait('e', { timeout: '20s' });
      const notified = server.post('/v2/notify/e', undefined, { body: 'late' });
      server.clock.advance(20_000);
      const answer = await notified;
      const { step } = await run.lastDelivery(2);
      expect(step.waitTimeout).toBe(answer.length === 0);
      expect(await run.journal()).toHaveLength(2);
    }),

    statement('W88', 'A finished run waits for nothing.', async (server) => {
      const canceled = await startAndDeliver(server);
      const finished = await startAndDeliver(server);
      const failed = await startAndDeliver(server, {
        headers: { 'upstash-retries': '0' },
        failureUrl: server.destination('/failure'),
      });
      const runs = [canceled, finished, failed];
      for (const run of runs) await run.wait('e');
      expect(await waiters(server, 'e')).toHaveLength(3);
      await canceled.cancel();
      await finished.finish();
      server.endpoint.replies(failed.path, BROKEN);
      await failed.step({ stepId: 2, stepName: 'b', stepType: 'Run', out: '1', concurrent: 1 });
      await failed.logged('RUN_FAILED');
      expect(await waiters(server, 'e')).toEqual([]);
      expect(await server.post('/v2/notify/e')).toEqual([]);
      server.clock.advance(8 * 86_400_000);
      await canceled.lastDelivery(1);
    }),

    statement(
      'W89',
      'An event id with other characters gets 400.',
      async (server) => {
        const run = await startAndDeliver(server);
        for (const eventId of ['a:b', 'a%3Ab', 'a%20b', 'a%2Fb']) {
          for (const [method, target] of [
            ['POST', `/v2/notify/${eventId}`],
            ['POST', `/v2/notify/${run.id}/${eventId}`],
            ['GET', `/v2/waiters/${eventId}`],
          ] as const) {
            expect((await server.ask(method, target)).status, `${method} ${target}`).toBe(400);
          }
        }
        expect((await run.wait('a:b')).status).toBe(422);
        for (const eventId of ['a-b_c.D9', '%61']) expect(await waiters(server, eventId)).toEqual([]);
      },
      {
        deviation:
          'For a notify and for the list of waiters. A wait that asks for it is 422: for the library 400 means that the run is over, and it would stop in silence instead of failing (contract W 4.7).',
      },
    ),

    statement('W90', 'A request to a webhook delivers the request, and needs no token.', async (server) => {
      const run = await startAndDeliver(server);
      await run.wait('evt_a', { step: { ...waitStep(1), stepType: 'WaitForWebhook' } });
      const target = `${hookOf(run, 'evt_a')}?q=1`;
      const headers = { 'content-type': 'application/json', 'x-hook': 'h' };
      const { status } = await server.ask('POST', target, { token: null, headers, body: '{"hook":1}' });
      expect(status).toBeLessThan(300);
      const { step } = await run.delivery(2);
      expect(step).toMatchObject({ stepType: 'WaitForWebhook', waitEventId: 'evt_a', waitTimeout: false });
      const request = requestIn(step);
      expect(request).toMatchObject({
        method: 'POST',
        header: { 'Content-Type': ['application/json'], 'X-Hook': ['h'] },
        body: base64('{"hook":1}'),
      });
      expect(`${request.proto}://${request.host}${request.url}`).toBe(`${server.url}${target}`);
      expect(
        () => new Headers(Object.entries(request.header).map(([name, values]) => [name, String(values)])),
      ).not.toThrow();
    }),

    statement('W91', 'Requests to a webhook before the wait are kept, and delivered in order.', async (server) => {
      const run = await startAndDeliver(server);
      const hook = hookOf(run, 'evt_a');
      for (const nth of [1, 2]) {
        expect((await server.ask('GET', `${hook}?nth=${nth}`, { token: null })).status).toBeLessThan(300);
      }
      for (const nth of [1, 2]) {
        await run.wait('evt_a', { step: waitStep(nth) });
        const request = requestIn((await run.delivery(nth + 1)).step);
        expect(request).not.toHaveProperty('body');
        expect([request.method, request.url]).toEqual(['GET', `${hook}?nth=${nth}`]);
      }
      const stranger = hook.replace(/hooks\/[^/]+/, 'hooks/stranger');
      expect((await server.ask('POST', stranger, { token: null })).status).toBe(404);
      await run.finish();
      expect((await server.ask('POST', hook, { token: null })).status).toBe(404);
    }),
  ],
};
