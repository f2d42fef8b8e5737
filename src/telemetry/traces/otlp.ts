/** Converts spans to those of OpenTelemetry, whose package encodes a request to a collector (`ExportTraceServiceRequest`). */
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import type { Attributes, Span } from './spans.ts';

type ReadableSpan = Parameters<typeof ProtobufTraceSerializer.serializeRequest>[0][number];
type Time = ReadableSpan['startTime'];
type Shared = Pick<ReadableSpan, 'resource' | 'instrumentationScope'>;

/** Encoded at a time: 0.4 ms, so that no request holds the event loop. */
const PIECE_SPANS = 64;

/** `SpanKind` and `SpanStatusCode` of OpenTelemetry. */
const KINDS = { internal: 0, client: 2, producer: 3 } as const;
const STATUS_UNSET = { code: 0 } as const;
const STATUS_ERROR = 2;

const NONE: never[] = [];
const NOTHING_ELSE = {
  ...{ links: NONE, events: NONE, ended: true, duration: [0, 0] as Time },
  ...{ droppedAttributesCount: 0, droppedEventsCount: 0, droppedLinksCount: 0 },
};

/** The sender that each request names. */
export interface Sender {
  resource: Attributes;
  /** Of Waypost. */
  version: string;
}

/** Collects spans for one request. */
export class SpanRequest {
  readonly #shared: Shared;
  /** Not yet encoded. */
  #spans: ReadableSpan[] = [];
  /** Each a request by itself: messages of protobuf merge when they are concatenated. */
  #pieces: Uint8Array[] = [];
  #count = 0;
  #bytes = 0;

  constructor({ resource: attributes, version }: Sender) {
    this.#shared = {
      resource: { attributes } as Shared['resource'], // the encoder reads nothing else of it
      instrumentationScope: { name: 'waypost', version },
    };
  }

  /** Of spans. */
  get count(): number {
    return this.#count;
  }

  /** Of the spans that are encoded. */
  get bytes(): number {
    return this.#bytes;
  }

  add(span: Span): void {
    this.#spans.push(readable(span, this.#shared));
    this.#count += 1;
    if (this.#spans.length === PIECE_SPANS) this.#encode();
  }

  /** Returns the request and starts a new one. */
  take(): { count: number; body: Uint8Array } {
    this.#encode();
    const taken = { count: this.#count, body: Buffer.concat(this.#pieces) };
    this.#pieces = [];
    this.#count = 0;
    this.#bytes = 0;
    return taken;
  }

  #encode(): void {
    const piece = ProtobufTraceSerializer.serializeRequest(this.#spans) ?? new Uint8Array();
    this.#spans = [];
    this.#pieces.push(piece);
    this.#bytes += piece.length;
  }
}

function readable({ traceId, spanId, parentId, name, kind, startMs, endMs, attributes, error }: Span, shared: Shared) {
  const context = { traceId, spanId, traceFlags: 1 };
  return {
    ...NOTHING_ELSE,
    ...shared,
    ...{ name, attributes, kind: KINDS[kind], startTime: timeOf(startMs), endTime: timeOf(endMs) },
    spanContext: () => context,
    ...(parentId !== undefined && { parentSpanContext: { traceId, spanId: parentId, traceFlags: 1 } }),
    status: error === undefined ? STATUS_UNSET : { code: STATUS_ERROR, message: error },
  };
}

/** Seconds, and nanoseconds in whole microseconds. */
function timeOf(ms: number): Time {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1000) * 1000];
}
