/**
 * Entry of the thread that sends spans, with the packages of OpenTelemetry, which only this thread loads. The exporter reads
 * its own environment variables: headers, time-out, compression, certificates.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import type { ExporterOptions, ExporterReply, ExporterRequest } from './exporter-thread.ts';
import type { Span } from './spans.ts';

const KINDS = { internal: SpanKind.INTERNAL, client: SpanKind.CLIENT, producer: SpanKind.PRODUCER } as const;

if (parentPort) run(parentPort, workerData as ExporterOptions);

function run(port: MessagePort, { endpoint, instance, version }: ExporterOptions): void {
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/+$/, '')}/v1/traces` });
  const own = { 'service.name': 'waypost', 'service.version': version, 'service.instance.id': instance };
  const resource = defaultResource()
    .merge(resourceFromAttributes(own))
    .merge(detectResources({ detectors: [envDetector] }));
  const scope = { name: 'waypost', version };
  let last: Promise<void> = Promise.resolve();
  port.on('message', ({ count, json }: ExporterRequest) => {
    last = last.then(async () => {
      const spans = (JSON.parse(json) as Span[]).map((span) => readable(span, { resource, scope }));
      const failure = await new Promise<string | undefined>((resolve) => {
        exporter.export(spans, ({ code, error }) => resolve(code === 0 ? undefined : (error?.message ?? 'unknown')));
      });
      const reply: ExporterReply = failure === undefined ? { count } : { count, failure };
      port.postMessage(reply);
    });
  });
}

function readable(
  { traceId, spanId, parentId, name, kind, startMs, endMs, attributes, error }: Span,
  { resource, scope }: { resource: Resource; scope: ReadableSpan['instrumentationScope'] },
): ReadableSpan {
  const traceFlags = TraceFlags.SAMPLED;
  return {
    name,
    kind: KINDS[kind],
    spanContext: () => ({ traceId, spanId, traceFlags }),
    ...(parentId !== undefined && { parentSpanContext: { traceId, spanId: parentId, traceFlags } }),
    startTime: timeOf(startMs),
    endTime: timeOf(endMs),
    duration: timeOf(endMs - startMs),
    status: error === undefined ? { code: SpanStatusCode.UNSET } : { code: SpanStatusCode.ERROR, message: error },
    attributes,
    links: [],
    events: [],
    ended: true,
    resource,
    instrumentationScope: scope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

/** Seconds and nanoseconds. */
function timeOf(ms: number): [number, number] {
  return [Math.floor(ms / 1000), Math.round((ms % 1000) * 1e6)];
}
