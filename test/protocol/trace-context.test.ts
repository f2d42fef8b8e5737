/** Which trace a publish names (W3C Trace Context, W3C Baggage). */
import { describe, expect, test } from 'vitest';
import { readTriggerOptions, selectSavedHeaders } from '../../src/protocol/options/trigger-options.ts';
import { parseTraceParent, readTraceContext } from '../../src/protocol/trace-context.ts';

const PARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const OTHER = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00';

function read(rawHeaders: string[], { forwarded = {}, baggage = true, requestHeaders = [] as string[] } = {}) {
  return readTraceContext(forwarded, rawHeaders, { cloudEvents: false, baggage, requestHeaders });
}

test('a parent is parsed', () => {
  expect(parseTraceParent(PARENT)).toEqual({
    traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
    spanId: '00f067aa0ba902b7',
    isSampled: true,
  });
  expect(parseTraceParent(OTHER)?.isSampled).toBe(false);
  expect(parseTraceParent(`01${PARENT.slice(2)}-later`)).toEqual(parseTraceParent(PARENT));
});

test.each([
  '',
  'nonsense',
  PARENT.toUpperCase(),
  `ff${PARENT.slice(2)}`,
  `${PARENT}-more`,
  PARENT.replace('4bf92f3577b34da6a3ce929d0e0e4736', '0'.repeat(32)),
  PARENT.replace('00f067aa0ba902b7', '0'.repeat(16)),
  `01${PARENT.slice(2)}-${'x'.repeat(200)}`,
  `01${PARENT.slice(2)}-\u2603`,
  `01${PARENT.slice(2)}-\u0001x`,
])('a parent that must be ignored by the standard is not a trace: %s', (value) => {
  expect(parseTraceParent(value)).toBeUndefined();
  expect(read(['traceparent', value, 'tracestate', 'a=1'])).toBeUndefined();
});

describe('the trace of a publish', () => {
  test('is read from its plain headers in any letter case', () => {
    expect(read(['TraceParent', ` ${PARENT}`, 'TRACESTATE', 'a=1', 'tracestate', 'b=2', 'Baggage', 'user=7'])).toEqual({
      parent: PARENT,
      state: 'a=1,b=2',
      baggage: 'user=7',
    });
    expect(read(['tracestate', 'a=1', 'baggage', 'user=7'])).toBeUndefined();
  });

  test('is ignored with two parents', () => {
    expect(read(['traceparent', PARENT, 'traceparent', OTHER])).toBeUndefined();
  });

  test('is taken completely from the forwarded headers', () => {
    const forwarded = { Traceparent: [OTHER], Baggage: ['own=1'] };
    expect(read(['traceparent', PARENT, 'tracestate', 'a=1', 'baggage', 'user=7'], { forwarded })).toEqual({
      parent: OTHER,
    });
    expect(read(['traceparent', PARENT], { forwarded: { Traceparent: ['nonsense'] } })).toBeUndefined();
  });

  test('is that of the batch request if an item has none', () => {
    expect(read([], { requestHeaders: ['traceparent', PARENT] })).toEqual({ parent: PARENT });
    const own = ['traceparent', OTHER];
    expect(read(own, { requestHeaders: ['traceparent', PARENT, 'tracestate', 'a=1'] })).toEqual({ parent: OTHER });
  });

  test('omits values that are too long, cannot be sent, or are not requested', () => {
    expect(read(['traceparent', PARENT, 'tracestate', `a=${'1'.repeat(511)}`])).toEqual({ parent: PARENT });
    expect(read(['traceparent', PARENT, 'tracestate', 'a=\u0007'])).toEqual({ parent: PARENT });
    expect(read(['traceparent', PARENT, 'baggage', `a=${'1'.repeat(8192)}`])).toEqual({ parent: PARENT });
    expect(read(['traceparent', PARENT, 'baggage', 'user=7'], { baggage: false })).toEqual({ parent: PARENT });
  });
});

test.each([false, true])('a message of a schedule is in no trace, with cloud events forwarded: %s', (cloudEvents) => {
  const input = {
    rawHeaders: ['Upstash-Cron', '* * * * *', 'Traceparent', PARENT],
    ...{ queryConfig: [], tokenInQuery: false, proxyHeaders: [], plainHeaders: { cloudEvents, baggage: true } },
  };
  const own = { settings: { dialect: 'upstash', maxRetries: 3 } } as const;
  const groupDefaults = { 'Upstash-Retries': ['5'] };
  const { settings } = readTriggerOptions(selectSavedHeaders(input), groupDefaults, { own, nowMs: 0 });
  expect(settings).toMatchObject({ maxRetries: 5 });
  expect(settings.trace).toBeUndefined();
});
