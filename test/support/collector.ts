/** An OpenTelemetry collector on loopback: receives OTLP over HTTP in protobuf, and decodes the fields that tests check. */
import http from 'node:http';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import protobuf from 'protobufjs';
import { eventually } from './eventually.ts';
import { listen } from './listen.ts';

export interface CollectedSpan {
  traceId: string;
  spanId: string;
  /** `''` for the first span of a trace. */
  parentId: string;
  name: string;
  kind: number;
  startMs: number;
  endMs: number;
  attributes: Record<string, string | number>;
  /** 2 for an error. */
  statusCode: number;
  error: string;
  resource: Record<string, string | number>;
}

export class Collector {
  readonly spans: CollectedSpan[] = [];
  readonly requests: { path: string; headers: http.IncomingHttpHeaders }[] = [];
  /** The status of the collector's next responses. */
  status = 200;
  url = '';
  readonly #server = http.createServer(async (request, response) => {
    const body = await buffer(request);
    this.requests.push({ path: request.url ?? '', headers: request.headers });
    const { 'content-encoding': coding } = request.headers;
    if (this.status === 200) this.spans.push(...spansIn(coding === 'gzip' ? gunzipSync(body) : body));
    response.writeHead(this.status, { 'content-type': 'application/x-protobuf' }).end();
  });

  async open(): Promise<void> {
    this.url = await listen(this.#server);
  }

  /** Resolves to the `nth` span of this name (from 1) when it arrives. */
  span(name: string, nth = 1): Promise<CollectedSpan> {
    return eventually(
      () => `span ${nth} ${name} in ${this.spans.map((span) => span.name).join(', ')}`,
      () => this.spans.filter((span) => span.name === name)[nth - 1],
    );
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** The fields of `opentelemetry/proto/trace/v1/trace.proto` that Waypost sets. */
const REQUEST = protobuf
  .parse(`syntax = "proto3";
    message Request { repeated ResourceSpans resource_spans = 1; }
    message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
    message Resource { repeated KeyValue attributes = 1; }
    message ScopeSpans { repeated Span spans = 2; }
    message Span {
      bytes trace_id = 1; bytes span_id = 2; bytes parent_span_id = 4; string name = 5; int32 kind = 6;
      fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8; repeated KeyValue attributes = 9; Status status = 15;
    }
    message KeyValue { string key = 1; AnyValue value = 2; }
    message AnyValue { oneof value { string string_value = 1; int64 int_value = 3; } }
    message Status { string message = 2; int32 code = 3; }`)
  .root.lookupType('Request');

/** Throws if `body` is not a request with spans. */
export function spansIn(body: Uint8Array): CollectedSpan[] {
  const request: Request = REQUEST.toObject(REQUEST.decode(body), { longs: String, defaults: true });
  return (request.resourceSpans ?? []).flatMap(({ resource, scopeSpans }) =>
    (scopeSpans ?? []).flatMap(({ spans }) =>
      (spans ?? []).map((span) => ({
        ...{ traceId: hexOf(span.traceId), spanId: hexOf(span.spanId), parentId: hexOf(span.parentSpanId) },
        ...{
          name: span.name,
          kind: span.kind,
          startMs: msOf(span.startTimeUnixNano),
          endMs: msOf(span.endTimeUnixNano),
        },
        attributes: attributesOf(span.attributes),
        statusCode: span.status?.code ?? 0,
        error: span.status?.message ?? '',
        resource: attributesOf(resource?.attributes),
      })),
    ),
  );
}

interface Request {
  resourceSpans?: {
    resource?: { attributes?: Attribute[] };
    scopeSpans?: { spans?: DecodedSpan[] }[];
  }[];
}

interface DecodedSpan {
  traceId: Uint8Array;
  spanId: Uint8Array;
  parentSpanId?: Uint8Array;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes?: Attribute[];
  status?: { code?: number; message?: string };
}

interface Attribute {
  key: string;
  value: { stringValue?: string; intValue?: string };
}

function attributesOf(attributes: Attribute[] = []): Record<string, string | number> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]));
}

/** Converts nanoseconds, which exceed the precision of a number. */
function msOf(nanoseconds: string): number {
  return Number(BigInt(nanoseconds) / 1000n) / 1000;
}

function hexOf(bytes: Uint8Array = new Uint8Array()): string {
  return Buffer.from(bytes).toString('hex');
}
