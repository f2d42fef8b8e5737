/** Converts spans to OpenTelemetry's types, and encodes a request to a collector (`ExportTraceServiceRequest`). */
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import type { Attributes, Span } from './spans.ts';

type ReadableSpan = Parameters<typeof ProtobufTraceSerializer.serializeRequest>[0][number];
type Time = ReadableSpan['startTime'];
type Shared = Pick<ReadableSpan, 'resource' | 'instrumentationScope'>;

/**
 * The number of spans that are encoded at a time, which takes 0.4 ms: encoding a whole request would block the event
 * loop.
 */
const CHUNK_SPANS = 64;

/** `SpanKind` and `SpanStatusCode` of OpenTelemetry. */
const KINDS = { internal: 0, client: 2, producer: 3 } as const;
const STATUS_UNSET = { code: 0 } as const;
const STATUS_ERROR = 2;

const NONE: never[] = [];
const NO_OTHER_MEMBERS = {
  ...{ links: NONE, events: NONE, ended: true, duration: [0, 0] as Time },
  ...{ droppedAttributesCount: 0, droppedEventsCount: 0, droppedLinksCount: 0 },
};

/** The source of the spans, which each request names. */
export interface Sender {
  resource: Attributes;
  /** The version of Waypost. */
  version: string;
}

/** Collects spans for one request. */
export class SpanRequest {
  readonly #shared: Shared;
  /** Spans that are not encoded yet. */
  #spans: ReadableSpan[] = [];
  /**
   * The encoded spans. Each chunk is a complete request, and the concatenated chunks are one request, since protobuf
   * merges messages.
   */
  #chunks: Uint8Array[] = [];
  #count = 0;
  #bytes = 0;

  constructor({ resource: attributes, version }: Sender) {
    this.#shared = {
      resource: { attributes } as Shared['resource'], // the encoder reads no other member
      instrumentationScope: { name: 'waypost', version },
    };
  }

  /** Number of spans. */
  get count(): number {
    return this.#count;
  }

  /** Bytes of the encoded spans. */
  get bytes(): number {
    return this.#bytes;
  }

  add(span: Span): void {
    this.#spans.push(toReadableSpan(span, this.#shared));
    this.#count += 1;
    if (this.#spans.length === CHUNK_SPANS) this.#encode();
  }

  /** Returns the request and starts a new one. */
  take(): { count: number; body: Uint8Array } {
    this.#encode();
    const request = { count: this.#count, body: Buffer.concat(this.#chunks) };
    this.#chunks = [];
    this.#count = 0;
    this.#bytes = 0;
    return request;
  }

  #encode(): void {
    const chunk = ProtobufTraceSerializer.serializeRequest(this.#spans) ?? new Uint8Array();
    this.#spans = [];
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
  }
}

function toReadableSpan(
  { traceId, spanId, parentId, name, kind, startMs, endMs, attributes, error }: Span,
  shared: Shared,
) {
  const context = { traceId, spanId, traceFlags: 1 };
  return {
    ...NO_OTHER_MEMBERS,
    ...shared,
    ...{ name, attributes, kind: KINDS[kind], startTime: timeOf(startMs), endTime: timeOf(endMs) },
    spanContext: () => context,
    ...(parentId !== undefined && { parentSpanContext: { traceId, spanId: parentId, traceFlags: 1 } }),
    status: error === undefined ? STATUS_UNSET : { code: STATUS_ERROR, message: error },
  };
}

/** Seconds and nanoseconds, rounded to microseconds. */
function timeOf(ms: number): Time {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1000) * 1000];
}
