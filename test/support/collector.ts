/** A collector of OpenTelemetry on loopback: takes OTLP over HTTP in protobuf, and knows of it just what the tests ask. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import proto from '@opentelemetry/otlp-transformer/build/src/generated/root.js';
import { eventually } from './eventually.ts';

export interface CollectedSpan {
  traceId: string;
  spanId: string;
  /** `''`: it is the first of its trace. */
  parentId: string;
  name: string;
  kind: number;
  startMs: number;
  endMs: number;
  attributes: Record<string, string | number>;
  /** 2: an error. */
  statusCode: number;
  error: string;
  resource: Record<string, string | number>;
}

export class Collector {
  readonly spans: CollectedSpan[] = [];
  readonly requests: { path: string; headers: http.IncomingHttpHeaders }[] = [];
  /** What it answers from now on. */
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
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Resolves to the `nth` span of this name (from 1) once it is there. */
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

/** Read by the code that OpenTelemetry makes from its definitions; later versions of the package only write. */
const { ExportTraceServiceRequest } = (proto as unknown as Definitions).opentelemetry.proto.collector.trace.v1;

interface Definitions {
  opentelemetry: { proto: { collector: { trace: { v1: { ExportTraceServiceRequest: Decoder } } } } };
}

interface Decoder {
  decode(bytes: Uint8Array): object;
  toObject(decoded: object, options: { longs: typeof String }): Request;
}

/** Throws for what is no request of spans. */
export function spansIn(body: Uint8Array): CollectedSpan[] {
  const request = ExportTraceServiceRequest.toObject(ExportTraceServiceRequest.decode(body), {
    longs: String,
  });
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

/** Of nanoseconds, which are more than a number holds exactly. */
function msOf(nanoseconds: string): number {
  return Number(BigInt(nanoseconds) / 1000n) / 1000;
}

function hexOf(bytes: Uint8Array = new Uint8Array()): string {
  return Buffer.from(bytes).toString('hex');
}
