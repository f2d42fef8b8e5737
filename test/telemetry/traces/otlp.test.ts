/** Each field of a span reaches its field of the protocol. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { SpanRequest } from '../../../src/telemetry/traces/otlp.ts';
import type { Span } from '../../../src/telemetry/traces/spans.ts';
import { spansIn } from '../../support/collector.ts';

const SENDER = { resource: { 'service.name': 'waypost', 'worker.rank': 3 }, version: '1.2.3' };

const text = fc.string({ unit: 'binary', maxLength: 140 });

const idOf = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((id) => Buffer.from(id).toString('hex'));

const span: fc.Arbitrary<Span> = fc.record(
  {
    traceId: idOf(16),
    spanId: idOf(8),
    parentId: idOf(8),
    name: text,
    kind: fc.constantFrom('internal', 'client', 'producer'),
    startMs: fc.integer({ min: 0, max: 4_000_000_000_000 }),
    endMs: fc.integer({ min: 0, max: 4_000_000_000_000 }),
    attributes: fc.dictionary(fc.string({ minLength: 1, maxLength: 20 }), fc.oneof(text, fc.maxSafeNat()), {
      maxKeys: 12,
      noNullPrototype: true,
    }),
    error: text,
  },
  { requiredKeys: ['traceId', 'spanId', 'name', 'kind', 'startMs', 'endMs', 'attributes'] },
);

it('encodes every field of every span, however many there are', () => {
  const request = new SpanRequest(SENDER);
  fc.assert(
    fc.property(fc.array(span, { maxLength: 150, size: 'max' }), (spans) => {
      for (const each of spans) request.add(each);
      const { count, body } = request.take();
      expect(count).toBe(spans.length);
      expect(spansIn(body)).toEqual(
        spans.map(({ parentId = '', kind, error, ...same }) => ({
          ...same,
          parentId,
          kind: { internal: 1, client: 3, producer: 4 }[kind],
          statusCode: error === undefined ? 0 : 2,
          error: error ?? '',
          resource: SENDER.resource,
        })),
      );
    }),
    { numRuns: 30 },
  );
});
