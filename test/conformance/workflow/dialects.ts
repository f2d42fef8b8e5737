/** The own prefix of the server in place of the other (contract W 26.106, 1). */
import { expect } from 'vitest';
import { signatureOf } from '../support/signature.ts';
import { type Section, statement } from '../support/statement.ts';
import type { Json } from '../support/subject.ts';
import { base64, type Delivery, deliveryOf, plans, runStep, waitStep } from '../support/workflow.ts';

const INIT = {
  'Waypost-Workflow-Init': 'true',
  'Waypost-Workflow-RunId': 'wfr_x',
  'Waypost-Workflow-Sdk-Version': '1',
  'Waypost-Forward-Waypost-Workflow-Sdk-Version': '1',
  'Waypost-Feature-Set': 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig',
};

function expectOwnPrefix({ headers }: Delivery, foreign: string[] = []): void {
  expect(Object.keys(headers).filter((name) => name.startsWith('upstash-'))).toEqual(foreign);
  expect(headers).toMatchObject({
    'waypost-workflow-runid': 'wfr_x',
    'waypost-message-id': expect.stringMatching(/^msg_/),
    'waypost-retried': '0',
  });
}

export const dialects: Section = {
  title: 'Dialects',
  statements: [
    statement('W106', "All of this works with the server's own prefix, and is delivered with it.", async (server) => {
      const url = server.destination('/wf');
      server.endpoint.replies('/wf', { headers: { 'Waypost-Workflow-Sdk-Version': '1' } });
      const delivery = async (nth: number): Promise<Delivery> => deliveryOf(await server.endpoint.arrival('/wf', nth));
      const start = { ...INIT, 'Waypost-Workflow-Url': url, 'Waypost-Retries': '0', 'Waypost-Forward-X-User': 'u' };
      await server.publish('/wf', { ...start, 'Waypost-Failure-Callback': server.destination('/failure') }, 'payload');
      const first = await delivery(1);
      expectOwnPrefix(first);
      expect(first.headers).toMatchObject({ 'waypost-workflow-sdk-version': '1', 'x-user': 'u' });
      const signature = signatureOf({
        ...first,
        headers: { 'upstash-signature': String(first.headers['waypost-signature']) },
      });
      expect(signature.claims.iss).toBe('Waypost');

      const append = {
        'Waypost-Workflow-Init': 'false',
        'Waypost-Workflow-RunId': 'wfr_x',
        'Waypost-Workflow-Url': url,
      };
      const step = { ...append, 'Waypost-Forward-Waypost-Workflow-Sdk-Version': '1' };
      const named = { 'Waypost-Forward-Upstash-Workflow-StepId': '1' }; // names that are forwarded stay as they are
      await server.publish('/wf', { ...step, ...named }, JSON.stringify(runStep(1)));
      const second = await delivery(2);
      expectOwnPrefix(second, ['upstash-workflow-stepid']);
      expect(second.step).toEqual(runStep(1));

      await server.publish('/third', {
        ...append,
        'Waypost-Workflow-CallType': 'toCallback',
        'Waypost-Callback': url,
        'Waypost-Callback-Workflow-RunId': 'wfr_x',
        'Waypost-Callback-Workflow-CallType': 'fromCallback',
        'Waypost-Callback-Forward-Waypost-Workflow-Callback': 'true',
      });
      const result = await delivery(3);
      expectOwnPrefix(result);
      expect(result.headers['waypost-workflow-callback']).toBe('true');

      const timeoutHeaders = Object.fromEntries(Object.entries(step).map(([name, value]) => [name, [value]]));
      const wait = { url, timeout: '20s', timeoutUrl: url, timeoutHeaders, step: waitStep(2) };
      await server.post('/v2/wait/e', wait, { headers: step });
      const [waiter] = await server.get('/v2/waiters/e');
      expect(waiter.headers).toMatchObject({ 'Waypost-Workflow-Runid': ['wfr_x'], 'Waypost-Workflow-Url': [url] });
      await server.post('/v2/notify/e', undefined, { body: 'event' });
      const notified = await delivery(4);
      expectOwnPrefix(notified);
      expect(notified.step.out).toBe(base64('event'));
      await server.post('/v2/wait/e', { ...wait, step: waitStep(3) }, { headers: step });
      server.clock.advance(20_000);
      expectOwnPrefix(await delivery(5));

      // Both prefixes may be used in one run, and the wrong one on an answer.
      server.endpoint.replies('/wf', { status: 489, headers: { 'Upstash-NonRetryable-Error': 'true' } });
      await server.publish('/wf', step, JSON.stringify(plans(4, 1)[0] as Json));
      expectOwnPrefix(await delivery(6));
      const failure = deliveryOf(await server.endpoint.arrival('/failure'));
      expectOwnPrefix(failure);
      expect(failure.headers['waypost-workflow-failure-callback']).toBe('true');
      const body = JSON.stringify({ ...wait, step: waitStep(7) });
      expect((await server.ask('POST', '/v2/wait/e', { headers: step, body })).status).toBe(400);
    }),
  ],
};
