/** The spans that a collector gets from a complete server: one order is one tree of spans. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { parseTraceParent } from '../../../src/protocol/trace-context.ts';
import { Subject } from '../../conformance/support/subject.ts';
import { BROKEN, runStep, startAndDeliver, waitStep } from '../../conformance/support/workflow.ts';
import { type CollectedSpan, Collector } from '../../support/collector.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const PUBLISHER = '00f067aa0ba902b7';
const TRACE = { traceparent: `00-${TRACE_ID}-${PUBLISHER}-01` };

const HOST = '127.0.0.1';
const ATTEMPT = `attempt ${HOST}`;

const collector = new Collector();
let server: Subject;

// One for all: a server takes longer to start than all that is asked here.
beforeAll(async () => {
  await collector.open();
  server = await Subject.open({ flags: ['--traces-endpoint', collector.url], isStoreInline: true });
});
beforeEach(() => {
  collector.spans.length = 0;
});
afterAll(async () => {
  await server?.close();
  await collector.close();
});

/** Each span with those above it, from the top. */
function pathsOf(spans: readonly CollectedSpan[]): string[] {
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  const pathOf = ({ parentId, name }: CollectedSpan): string => {
    const parent = byId.get(parentId);
    return parent ? `${pathOf(parent)} > ${name}` : name;
  };
  return spans.map(pathOf).toSorted();
}

it('shows a message as a tree of its attempts and callbacks, below the span of its publisher', async () => {
  const { endpoint } = server;
  endpoint.replies('/order', { status: 503 }, {});
  await server.publish('/order', {
    ...TRACE,
    'Upstash-Retry-Delay': '5000',
    'Upstash-Callback': server.destination('/told'),
  });
  await endpoint.arrival('/told');
  server.clock.advance(5000);
  await endpoint.arrival('/told', 2);
  await collector.span(ATTEMPT, 4);
  const { spans } = collector;
  expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE_ID]));
  const attempt = `publish ${HOST} > ${ATTEMPT}`;
  expect(pathsOf(spans)).toEqual([
    `publish ${HOST}`,
    ...[attempt, attempt],
    ...[`${attempt} > callback ${HOST}`, `${attempt} > callback ${HOST}`],
    ...[`${attempt} > callback ${HOST} > ${ATTEMPT}`, `${attempt} > callback ${HOST} > ${ATTEMPT}`],
    `publish ${HOST} > wait`,
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
      [ATTEMPT, 2, 503],
      [ATTEMPT, 0, 200],
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
});

it('shows a run as one tree, and begins its trace where its trigger names none', async () => {
  const { endpoint } = server;
  const failing = { headers: { 'upstash-retries': '0' }, failureUrl: server.destination('/failed') };
  const run = await startAndDeliver(server, failing);
  await run.step(runStep(1), { traceparent: `00-${'1'.repeat(32)}-${PUBLISHER}-01` });
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
      ...[...stepPaths, `${top} > ${top} > step init`].flatMap((path) => [path, `${path} > ${ATTEMPT}`]),
    ].toSorted(),
  );
  const waited = ofRun.find(({ name }) => name === 'wait-for-event');
  expect([waited && waited.endMs - waited.startMs, waited?.attributes]).toEqual([
    60_000,
    { 'waypost.run.id': run.id, 'waypost.event.id': 'paid', 'waypost.event.ended_by': 'event' },
  ]);
  for (const { headers } of [...endpoint.to(run.path), ...endpoint.to('/called'), ...endpoint.to(child.path)]) {
    const sent = parseTraceParent(String(headers['traceparent']));
    expect(ofRun.find(({ spanId }) => spanId === sent?.spanId)?.name).toBe(ATTEMPT);
  }
});

it('shows an invoked run below the one that invokes it, also in the trace of a publisher', async () => {
  const order = await startAndDeliver(server, { headers: TRACE });
  const parcel = await order.invoke();
  await parcel.delivery(1);
  await parcel.finish();
  await order.delivery(2);
  await collector.span('step invoke-1');
  const spanOf = (name: RegExp, { id }: { id: string }) =>
    collector.spans.find((span) => name.test(span.name) && span.attributes['waypost.run.id'] === id);
  expect(spanOf(/^run/, parcel)?.parentId).toBe(spanOf(/^step init/, order)?.parentId);
  expect(spanOf(/^run/, parcel)?.traceId).toBe(TRACE_ID);
});

it('passes on what its publisher does not record, and tells nothing of it', async () => {
  const unsampled = `00-${TRACE_ID}-${PUBLISHER}-00`;
  await server.publish('/unsampled', { traceparent: unsampled });
  expect((await server.endpoint.arrival('/unsampled')).headers['traceparent']).toBe(unsampled);
  await server.publish('/recorded', TRACE);
  await collector.span(ATTEMPT);
  expect(collector.spans.map(({ name }) => name).toSorted()).toEqual([ATTEMPT, `publish ${HOST}`]);
});

it('says how much the collector did not take, and delivers all the same', async () => {
  collector.status = 400;
  await server.publish('/lost');
  await server.endpoint.arrival('/lost');
  await server.close();
  expect(collector.spans).toEqual([]);
  expect(server.warnings).toContainEqual(expect.objectContaining({ event: 'spans_dropped', count: 2 }));
});
