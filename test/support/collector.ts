/** A collector of OpenTelemetry on loopback: takes OTLP over HTTP in protobuf, and knows of it just what the tests ask. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
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
    if (this.status === 200) this.spans.push(...spansIn(body));
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

/** Field numbers are those of opentelemetry/proto/trace/v1/trace.proto. */
function spansIn(body: Buffer): CollectedSpan[] {
  return fieldsOf(body)
    .all(1)
    .flatMap((ofResource) => {
      const { all } = fieldsOf(ofResource);
      const resource = attributesOf(all(1).flatMap((each) => fieldsOf(each).all(1)));
      return all(2).flatMap((ofScope) =>
        fieldsOf(ofScope)
          .all(2)
          .map((span) => spanOf(span, resource)),
      );
    });
}

function spanOf(bytes: Buffer, resource: CollectedSpan['resource']): CollectedSpan {
  const { all, number } = fieldsOf(bytes);
  const [traceId, spanId, parentId] = [1, 2, 4].map((field) => all(field)[0]?.toString('hex') ?? '');
  const [status] = all(15);
  return {
    ...{ traceId: traceId ?? '', spanId: spanId ?? '', parentId: parentId ?? '' },
    name: all(5)[0]?.toString() ?? '',
    kind: number(6),
    startMs: number(7) / 1e6,
    endMs: number(8) / 1e6,
    attributes: attributesOf(all(9)),
    statusCode: status ? fieldsOf(status).number(3) : 0,
    resource,
  };
}

function attributesOf(pairs: readonly Buffer[]): Record<string, string | number> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const { all } = fieldsOf(pair);
      const value = fieldsOf(all(2)[0] ?? Buffer.alloc(0));
      return [all(1)[0]?.toString() ?? '', value.all(1)[0]?.toString() ?? value.number(3)];
    }),
  );
}

interface Fields {
  /** Those with a length. */
  all(field: number): Buffer[];
  number(field: number): number;
}

/** One message of protobuf. */
function fieldsOf(bytes: Buffer): Fields {
  const lengths = new Map<number, Buffer[]>();
  const numbers = new Map<number, number>();
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++] ?? 0;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    const field = Math.floor(tag / 8);
    switch (tag % 8) {
      case 0:
        numbers.set(field, varint());
        break;
      case 1:
        numbers.set(field, Number(bytes.readBigUInt64LE(at)));
        at += 8;
        break;
      case 2: {
        const length = varint();
        lengths.set(field, [...(lengths.get(field) ?? []), bytes.subarray(at, at + length)]);
        at += length;
        break;
      }
      default:
        at += 4;
    }
  }
  return { all: (field) => lengths.get(field) ?? [], number: (field) => numbers.get(field) ?? 0 };
}
