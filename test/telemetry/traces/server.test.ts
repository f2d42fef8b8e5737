/** What a collector gets of a whole server: one order as one tree of spans. */
import { afterEach, expect, it } from 'vitest';
import { parseTraceParent } from '../../../src/protocol/trace-context.ts';
import { Subject } from '../../conformance/support/subject.ts';
import { BROKEN, runStep, startAndDeliver, waitStep } from '../../conformance/support/workflow.ts';
import { type CollectedSpan, Collector } from '../../support/collector.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const PUBLISHER = '00f067aa0ba902b7';
const TRACE = { traceparent: `00-${TRACE_ID}-${PUBLISHER}-01` };

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close();
});

async function open(): Promise<{ server: Subject; collector: Collector }> {
  const collector = new Collector();
  await collector.open();
  opened.push(collector);
  const flags = ['--traces-endpoint', collector.url];
  const server = await Subject.open({ flags, isStoreInline: true });
  opened.push(server);
  return { server, collector };
}

/** Each span with those above it, from the top. */
function pathsOf(spans: readonly CollectedSpan[]): string[] {
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  const pathOf = ({ parentId, name }: CollectedSpan): string => {
    const parent = byId.get(parentId);
    return parent ? `${pathOf(parent)} > ${name}` : name;
  };
  return spans.map(pathOf).toSorted();
}

it('shows a message and a run each as one tree, below the span of their publisher', async () => {
  const { server, collector } = await open();
  const { endpoint } = server;

  // A message that fails once, and its callbacks.
  endpoint.replies('/order', { status: 503 }, {});
  await server.publish('/order', {
    ...TRACE,
    'Upstash-Retry-Delay': '5000',
    'Upstash-Callback': server.destination('/told'),
  });
  await endpoint.arrival('/told');
  server.clock.advance(5000);
  await endpoint.arrival('/told', 2);
  await collector.span('attempt 127.0.0.1', 4);
  const spans = collector.spans.splice(0);
  expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE_ID]));
  const host = '127.0.0.1';
  const attempt = `publish ${host} > attempt ${host}`;
  expect(pathsOf(spans)).toEqual([
    `publish ${host}`,
    ...[attempt, attempt],
    ...[`${attempt} > callback ${host}`, `${attempt} > callback ${host}`],
    ...[`${attempt} > callback ${host} > attempt ${host}`, `${attempt} > callback ${host} > attempt ${host}`],
    `publish ${host} > wait`,
  ]);
  const publish = spans.find(({ name }) => name.startsWith('publish'));
  expect(publish).toMatchObject({
    parentId: PUBLISHER,
    kind: 4, // a producer
    attributes: { 'messaging.system': 'waypost', 'messaging.operation.type': 'send' },
    resource: { 'service.name': 'waypost' },
  });
  const attempts = spans.filter(({ parentId }) => parentId === publish?.spanId && parentId !== '');
  expect(
    attempts.map(({ name, statusCode, attributes }) => [name, statusCode, attributes['http.response.status_code']]),
  ).toEqual(
    expect.arrayContaining([
      [`attempt ${host}`, 2, 503],
      [`attempt ${host}`, 0, 200],
      ['wait', 0, undefined],
    ]),
  );
  const wait = spans.find(({ name }) => name === 'wait');
  expect([wait && wait.endMs - wait.startMs, wait?.attributes]).toEqual([5000, { 'waypost.wait.reason': 'retry' }]);
  // What the endpoint was sent is the very attempt.
  for (const [index, { headers }] of endpoint.to('/order').entries()) {
    const { traceId, spanId } = parseTraceParent(String(headers['traceparent'])) ?? {};
    expect(traceId).toBe(TRACE_ID);
    const sent = spans.find((span) => span.spanId === spanId);
    expect(sent?.attributes['http.request.resend_count'] ?? 0).toBe(index);
  }

  // A run without a publisher's trace begins one, and all that belongs to it is in that.
  const failing = { headers: { 'upstash-retries': '0' }, failureUrl: server.destination('/failed') };
  const run = await startAndDeliver(server, failing);
  await run.step(runStep(1));
  await run.delivery(2);
  await run.call('/called', { stepId: 2 });
  await run.delivery(3);
  await run.wait('paid', { step: waitStep(3) });
  server.clock.advance(60_000);
  await server.post('/v2/notify/paid');
  await run.delivery(4);
  const child = await run.invoke({ stepId: 4 });
  await child.delivery(1);
  endpoint.replies(run.path, BROKEN);
  await child.finish();
  await endpoint.arrival('/failed');
  await run.logged('RUN_FAILED');
  await collector.span('step failureCall');
  await collector.span(`run ${new URL(run.url).host}`, 2);
  const ofRun = collector.spans;
  expect(new Set(ofRun.map(({ traceId }) => traceId)).size).toBe(1);
  expect(ofRun.filter(({ parentId }) => parentId === '').map(({ name }) => name)).toEqual([
    `run ${new URL(run.url).host}`,
  ]);
  const top = `run ${new URL(run.url).host}`;
  const steps = ['init', 'run-1', 'call-2', 'call-2', 'wait-3', 'invoke-4', 'failureCall'];
  const stepPaths = steps.map((step) => `${top} > step ${step}`);
  expect(pathsOf(ofRun)).toEqual(
    [
      ...[top, `${top} > wait-for-event`, `${top} > ${top}`],
      ...[...stepPaths, `${top} > ${top} > step init`].flatMap((path) => [path, `${path} > attempt ${host}`]),
    ].toSorted(),
  );
  const waited = ofRun.find(({ name }) => name === 'wait-for-event');
  expect([waited && waited.endMs - waited.startMs, waited?.attributes]).toEqual([
    60_000,
    { 'waypost.run.id': run.id, 'waypost.event.id': 'paid', 'waypost.event.ended_by': 'event' },
  ]);
  for (const { headers } of [...endpoint.to(run.path), ...endpoint.to('/called'), ...endpoint.to(child.path)]) {
    const sent = parseTraceParent(String(headers['traceparent']));
    expect(ofRun.find(({ spanId }) => spanId === sent?.spanId)?.name).toBe(`attempt ${host}`);
  }

  // Who does not record passes on what came, and nothing is told of it.
  collector.spans.length = 0;
  const unsampled = `00-${TRACE_ID}-${PUBLISHER}-00`;
  await server.publish('/unsampled', { traceparent: unsampled });
  expect((await endpoint.arrival('/unsampled')).headers['traceparent']).toBe(unsampled);

  // Of what the collector does not take it is told how much it was, and messages go on.
  collector.status = 400;
  await server.publish('/lost');
  await endpoint.arrival('/lost');
  await server.close();
  opened.pop();
  expect(collector.spans).toEqual([]);
  expect(server.warnings).toContainEqual(expect.objectContaining({ event: 'spans_dropped', count: 2 }));
});
