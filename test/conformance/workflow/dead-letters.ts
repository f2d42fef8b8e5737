/** Runs that have failed, and what may be shown of them (contract W 26.102 to 26.105, 16.3, 21). */
import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { type Section, statement } from '../support/statement.ts';
import type { Json } from '../support/subject.ts';
import {
  BROKEN,
  DONE,
  deliveryOf,
  FEATURES,
  fail,
  Run,
  replyOf,
  runStep,
  startAndDeliver,
} from '../support/workflow.ts';

const DLQ = '/v2/workflows/dlq';

function redacted(text: string): string {
  return `REDACTED:${createHash('sha256').update(text).digest('hex')}`;
}

export const deadLetters: Section = {
  title: 'DLQ of runs, redaction',
  statements: [
    statement('W102', 'The DLQ lists failed runs under both paths, separately from messages.', async (server) => {
      server.endpoint.replies('/failure', { body: 'told' });
      const message = await server.bury('/message');
      const path = server.endpoint.newPath();
      server.endpoint.replies(path, replyOf(500, 'broken', { 'X-Answer': 'a' }));
      const run = await fail(server, {
        path,
        payload: 'payload',
        failureUrl: server.destination('/failure'),
        headers: { 'upstash-label': 'l' },
      });
      await run.told('CALLBACK_SUCCESS');
      const info = { state: 'CALLBACK_SUCCESS', responseStatus: 200, responseBody: 'told' };
      const list = await server.get(DLQ);
      const [entry] = list.messages;
      expect(list).toEqual({ messages: [entry] });
      expect(entry).toMatchObject({
        dlqId: expect.stringMatching(/^\d+-\d+$/),
        messageId: run.messageId,
        workflowRunId: run.id,
        workflowUrl: run.url,
        workflowCreatedAt: server.clock.nowMs(),
        url: run.url,
        method: 'POST',
        body: 'payload',
        maxRetries: 0,
        createdAt: server.clock.nowMs(),
        callerIP: '127.0.0.1',
        responseStatus: 500,
        responseHeader: { 'X-Answer': ['a'] },
        responseBody: 'broken',
        failureCallback: server.destination('/failure'),
        failureCallbackInfo: info,
        failureFunctionState: 'CALLBACK_SUCCESS',
        label: 'l',
        labels: ['l'],
      });
      expect(await server.get('/v2/dlq?source=workflow')).toEqual(list);
      for (const list of [DLQ, '/v2/dlq']) expect(await server.get(`${list}/${entry.dlqId}`)).toEqual(entry);
      const plain = (await server.get('/v2/dlq')).messages.map(({ messageId }: Json) => messageId);
      expect(plain).toEqual([message.messageId]);
      for (const [filter, count] of [
        [`workflowRunId=${run.id}`, 1],
        ['workflowRunId=wfr_unknown', 0],
        [`workflowUrl=${encodeURIComponent(run.url)}`, 1],
        ['label=other', 0],
        ['failureFunctionState=CALLBACK_FAIL', 0],
        ['failureCallbackState=CALLBACK_SUCCESS', 1],
      ] as const) {
        expect((await server.get(`${DLQ}?${filter}`)).messages, filter).toHaveLength(count);
      }
      expect(await server.delete(`${DLQ}?dlqIds=${entry.dlqId},1-1`)).toEqual({ deleted: 1 });
      expect((await server.ask('GET', `${DLQ}/${entry.dlqId}`)).status).toBe(404);
      expect((await server.ask('DELETE', `${DLQ}/${entry.dlqId}`)).status).toBe(404);
    }),

    statement(
      'W103',
      'Resume continues with the recorded steps in a new run; restart starts from the payload.',
      async (server) => {
        const again = async (action: string, headers: Record<string, string> = {}) => {
          const path = server.endpoint.newPath();
          server.endpoint.replies(path, DONE);
          const run = await startAndDeliver(server, {
            path,
            user: { 'X-User': 'u' },
            headers: { 'upstash-retries': '0' },
            failureUrl: server.destination('/failure'),
          });
          server.endpoint.replies(path, DONE, BROKEN, DONE);
          await run.step(runStep(1));
          await run.logged('RUN_FAILED');
          const { dlqId } = await run.buried();
          server.clock.advance(1000);
          const { status, json } = await server.ask('POST', `${DLQ}/${action}/${dlqId}`, { headers });
          expect([status, json]).toEqual([
            200,
            { workflowRunId: expect.any(String), workflowCreatedAt: server.clock.nowMs() },
          ]);
          const delivery = await run.delivery(3);
          expect(delivery.headers).toMatchObject({
            'upstash-workflow-runid': json.workflowRunId,
            'upstash-workflow-createdat': String(json.workflowCreatedAt),
            'upstash-workflow-sdk-version': '1',
            'x-user': 'u',
          });
          expect((await run.shown()).workflowState).toBe('RUN_FAILED');
          expect((await server.ask('GET', `${DLQ}/${dlqId}`)).status).toBe(404);
          return { run, next: json.workflowRunId, texts: delivery.texts, messageId: delivery.messageId };
        };
        const resumed = await again('resume');
        expect(resumed.next).toMatch(/^wfr_/);
        expect(resumed.next).not.toBe(resumed.run.id);
        expect(resumed.texts).toEqual(['{"a":1}', JSON.stringify(runStep(1))]);
        const next = new Run(server, { id: resumed.next, path: resumed.run.path, features: FEATURES }, '');
        await next.step(runStep(2));
        expect((await next.delivery(4)).texts).toHaveLength(3);
        await next.finish('"done"');
        expect((await next.shown()).workflowState).toBe('RUN_SUCCESS');

        const restarted = await again('restart', { 'Upstash-Workflow-RunId': 'own-id' });
        expect([restarted.next, restarted.texts]).toEqual(['own-id', ['{"a":1}']]);
        expect((await server.ask('POST', `${DLQ}/resume/1-1`)).status).toBe(404);
      },
    ),

    statement('W104', 'A failure callback can be sent again only if it has failed.', async (server) => {
      server.endpoint.replies('/failure', { status: 500 }, { status: 200 });
      const run = await fail(server, {
        failureUrl: server.destination('/failure'),
        headers: { 'upstash-failure-callback-retries': '0' },
      });
      await run.told('CALLBACK_FAIL');
      const { dlqId, failureFunctionState } = await run.buried();
      expect(failureFunctionState).toBe('CALLBACK_FAIL');
      const { status, json } = await server.ask('POST', `${DLQ}/callback/${dlqId}`);
      expect([status, json]).toEqual([200, { workflowRunId: run.id, workflowCreatedAt: server.clock.nowMs() }]);
      const again = deliveryOf(await server.endpoint.arrival('/failure', 2));
      expect(JSON.parse(again.body.toString())).toMatchObject({ status: 500, workflowRunId: run.id, dlqId });
      await run.told('CALLBACK_SUCCESS');
      expect((await server.ask('POST', `${DLQ}/callback/${dlqId}`)).status).toBe(400);
      expect((await server.ask('POST', `${DLQ}/callback/1-1`)).status).toBe(404);
      expect((await server.ask('DELETE', `${DLQ}/callback/${dlqId}`)).status).toBe(400);
      server.endpoint.replies('/closed', { status: 503 });
      const other = await fail(server, {
        failureUrl: server.destination('/closed'),
        headers: { 'upstash-failure-callback-retries': '1' },
      });
      await other.told('CALLBACK_INPROGRESS');
      const { dlqId: otherId } = await other.buried();
      expect((await server.ask('POST', `${DLQ}/callback/${otherId}`)).status).toBe(400);
      await server.endpoint.arrival('/closed');
      await eventually('its failed attempt', async () => (await other.shown()).failureFunction.errors?.length === 1);
      expect((await server.ask('DELETE', `${DLQ}/callback/${otherId}`)).status).toBe(200);
      await other.told('CALLBACK_CANCELED');
    }),

    statement('W105', 'Redacted bodies are hidden in logs and in the DLQ, and delivered unchanged.', async (server) => {
      server.endpoint.replies('/wf', DONE);
      const run = await startAndDeliver(server, {
        path: '/wf',
        payload: 'secret',
        headers: { 'upstash-redact-fields': 'body', 'upstash-retries': '0' },
        failureUrl: server.destination('/failure'),
      });
      server.endpoint.replies('/wf', DONE, replyOf(500, 'private'));
      await run.step(runStep(1, '"hidden"'));
      const delivery = await run.delivery(2);
      expect(delivery.texts).toEqual(['secret', JSON.stringify(runStep(1, '"hidden"'))]);
      await run.logged('RUN_FAILED');
      expect(JSON.parse((await server.endpoint.arrival('/failure')).body.toString()).body).toBe(
        Buffer.from('private').toString('base64'),
      );
      const shown = await run.shown();
      const [initial, first] = shown.steps;
      expect(initial.steps[0].out).toBe(redacted('secret'));
      expect(first.steps[0].out).toBe(redacted('"hidden"'));
      const entry = await run.buried();
      expect(entry).toMatchObject({ body: redacted('secret'), responseBody: redacted('private') });
      expect((await run.logged('ERROR')).responseBody).toBe(redacted('private'));
      for (const view of [shown, entry, await run.events()]) {
        expect(JSON.stringify(view)).not.toMatch(/secret|private|hidden/);
      }
      server.endpoint.replies('/wf', DONE);
      await server.post(`${DLQ}/resume/${entry.dlqId}`);
      expect((await run.delivery(3)).texts).toEqual(delivery.texts);
    }),
  ],
};
