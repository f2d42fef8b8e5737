/** Traces: what of a publisher's goes on (W3C Trace Context). The contract knows none of it; the headers are the standard's. */
import { expect } from 'vitest';
import type { Received } from '../support/endpoint.ts';
import { type Section, statement } from '../support/statement.ts';
import type { Subject } from '../support/subject.ts';
import { BROKEN, runStep, startAndDeliver, waitStep } from '../support/workflow.ts';

const PARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const OTHER = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const TRACE = { traceparent: PARENT, tracestate: 'vendor=1' };
const FAILED = { status: 500, body: 'broken' };

function traceOf({ headers }: Received): unknown {
  const { traceparent, tracestate, baggage } = headers;
  return { traceparent, tracestate, baggage };
}

const PASSED = { ...TRACE, baggage: undefined };
const NONE = { traceparent: undefined, tracestate: undefined, baggage: undefined };

async function expectTrace(server: Subject, path: string, nth: number, trace: unknown): Promise<void> {
  expect(traceOf(await server.endpoint.arrival(path, nth)), `${path} ${nth}`).toEqual(trace);
}

export const traces: Section = {
  title: 'Traces',
  statements: [
    statement('I35', 'The trace of a publish includes each attempt and all callbacks.', async (server) => {
      server.endpoint.replies('/', FAILED);
      await server.publish('/', {
        ...TRACE,
        'Upstash-Retries': '1',
        'Upstash-Retry-Delay': '1000',
        'Upstash-Callback': server.destination('/callback'),
        'Upstash-Callback-Callback': server.destination('/nested'),
        'Upstash-Failure-Callback': server.destination('/failure'),
      });
      await expectTrace(server, '/', 1, PASSED);
      await expectTrace(server, '/callback', 1, PASSED);
      await expectTrace(server, '/nested', 1, PASSED);
      server.clock.advance(1000);
      await expectTrace(server, '/', 2, PASSED);
      await expectTrace(server, '/failure', 1, PASSED);
    }),

    statement('I36', 'It also includes queues, groups, batches and retries from the DLQ.', async (server) => {
      await server.enqueue('q', '/queued', TRACE);
      await expectTrace(server, '/queued', 1, PASSED);
      const endpoints = [{ url: server.destination('/one') }, { url: server.destination('/two') }];
      await server.post('/v2/topics/g/endpoints', { endpoints });
      await server.publish('g', TRACE);
      for (const path of ['/one', '/two']) await expectTrace(server, path, 1, PASSED);
      const items = [
        { destination: server.destination('/first') },
        { destination: server.destination('/second'), headers: { traceparent: OTHER } },
      ];
      await server.post('/v2/batch', items, { headers: TRACE });
      await expectTrace(server, '/first', 1, PASSED);
      await expectTrace(server, '/second', 1, { ...NONE, traceparent: OTHER });
      const { dlqId } = await server.bury('/buried', TRACE);
      await server.post(`/v2/dlq/retry/${dlqId}`, undefined, { headers: { traceparent: OTHER } });
      await expectTrace(server, '/buried', 2, PASSED);
    }),

    statement(
      'I37',
      'A forwarded trace takes precedence; an invalid one is ignored without an error.',
      async (server) => {
        await server.publish('/forwarded', { ...TRACE, 'Upstash-Forward-Traceparent': OTHER });
        await expectTrace(server, '/forwarded', 1, { ...NONE, traceparent: OTHER });
        for (const traceparent of ['nonsense', PARENT.replace(/-.*-0/, `-${'0'.repeat(32)}-00f067aa0ba902b7-0`)]) {
          await server.publish('/invalid', { ...TRACE, traceparent });
        }
        await expectTrace(server, '/invalid', 1, NONE);
        await expectTrace(server, '/invalid', 2, NONE);
      },
    ),

    statement('I38', 'The triggers of a schedule are not in the trace of its creation.', async (server) => {
      await server.post(`/v2/schedules/${server.destination('/scheduled')}`, undefined, {
        headers: { ...TRACE, 'Upstash-Cron': '* * * * *' },
      });
      server.clock.advance(60_000);
      await expectTrace(server, '/scheduled', 1, NONE);
    }),

    statement('I39', 'A run is one trace, even if its steps name none or another.', async (server) => {
      const run = await startAndDeliver(server, {
        headers: { ...TRACE, 'upstash-retries': '0' },
        failureUrl: server.destination('/failed'),
      });
      await expectTrace(server, run.path, 1, PASSED);
      await run.step(runStep(1));
      await expectTrace(server, run.path, 2, PASSED);
      await run.step(runStep(2), { traceparent: OTHER });
      await expectTrace(server, run.path, 3, PASSED);
      await run.call('/called', { stepId: 3 });
      await expectTrace(server, '/called', 1, PASSED);
      await expectTrace(server, run.path, 4, PASSED);
      await run.wait('event', { step: waitStep(4) });
      await server.post('/v2/notify/event', undefined, { headers: { traceparent: OTHER } });
      await expectTrace(server, run.path, 5, PASSED);
      const child = await run.invoke({ stepId: 5 });
      await expectTrace(server, child.path, 1, PASSED);
      await child.step(runStep(1));
      await expectTrace(server, child.path, 2, PASSED);
      server.endpoint.replies(run.path, BROKEN);
      await child.finish();
      await expectTrace(server, run.path, 6, PASSED);
      await expectTrace(server, '/failed', 1, PASSED);
    }),

    statement(
      'I40',
      'Baggage is sent only to the hosts in a setting, and so is that of a run.',
      async (server) => {
        const { origin } = server.endpoint;
        const other = origin.replace('127.0.0.1', 'localhost');
        const all = { ...TRACE, baggage: 'user=7' };
        await server.publish(`${other}/other`, { ...all, 'Upstash-Callback': server.destination('/callback') });
        await expectTrace(server, '/other', 1, PASSED);
        await expectTrace(server, '/callback', 1, all);
        const run = await startAndDeliver(server, { headers: all });
        await run.call(`${other}/called`);
        await expectTrace(server, '/called', 1, PASSED);
        await expectTrace(server, run.path, 2, all);
      },
      { flags: ['--baggage-hosts', '127.0.0.1'] },
    ),

    statement(
      'I41',
      'Headers of an event (`ce-*`) are forwarded without the prefix when a setting says so.',
      async (server) => {
        const event = { 'ce-id': '7', 'ce-source': '/orders', 'ce-type': 'order.placed', 'ce-specversion': '1.0' };
        await server.publish('/event', { ...event, 'Upstash-Forward-Ce-Type': 'order.paid' });
        expect((await server.endpoint.arrival('/event')).headers).toMatchObject({ ...event, 'ce-type': 'order.paid' });
        await server.post('/v2/batch', [{ destination: server.destination('/item'), headers: event }]);
        expect((await server.endpoint.arrival('/item')).headers).toMatchObject(event);
        const cron = { 'Upstash-Cron': '* * * * *' };
        await server.post(`/v2/schedules/${server.destination('/scheduled')}`, undefined, {
          headers: { ...event, ...cron },
        });
        server.clock.advance(60_000);
        expect((await server.endpoint.arrival('/scheduled')).headers).toMatchObject(event);
      },
      { flags: ['--forward-cloud-events'] },
    ),

    statement('I42', 'Without that setting they are not forwarded.', async (server) => {
      await server.publish('/event', { 'ce-id': '7' });
      expect((await server.endpoint.arrival('/event')).headers).not.toHaveProperty('ce-id');
    }),
  ],
};
