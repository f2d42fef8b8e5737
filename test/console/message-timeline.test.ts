import { expect, it } from 'vitest';
import { type Entry, segmentsOf, timelineOf } from '../../console/src/screens/message/timeline-items.ts';

function entry(state: Entry['state'], time: number, more: Partial<Entry> = {}): Entry {
  return { messageId: 'msg_1', url: 'https://a.example', method: 'POST', maxRetries: 3, state, time, ...more };
}

const FAILED_THEN_DELIVERED = [
  entry('CREATED', 0),
  entry('ACTIVE', 10),
  entry('ERROR', 30, { responseStatus: 503, nextDeliveryTime: 1_030 }),
  entry('RETRY', 30, { nextDeliveryTime: 1_030 }),
  entry('ACTIVE', 1_030),
  entry('DELIVERED', 1_050, { responseStatus: 200 }),
];

it('combines the start and the end of an attempt, and the time of the next one', () => {
  expect(timelineOf(FAILED_THEN_DELIVERED)).toMatchObject([
    { kind: 'change', entry: { state: 'CREATED' } },
    { kind: 'attempt', number: 1, startMs: 10, result: { state: 'ERROR' }, nextMs: 1_030 },
    { kind: 'attempt', number: 2, startMs: 1_030, result: { state: 'DELIVERED' } },
  ]);
});

it('shows an attempt of a lost worker without a result', () => {
  const items = timelineOf([entry('CREATED', 0), entry('ACTIVE', 5), entry('ACTIVE', 60), entry('DELIVERED', 70)]);
  expect(items.map((item) => item.kind === 'attempt' && item.result?.state)).toEqual([false, undefined, 'DELIVERED']);
});

it('keeps entries without an earlier attempt, since older log entries may have expired', () => {
  expect(timelineOf([entry('RETRY', 5), entry('FAILED', 6)])).toMatchObject([
    { kind: 'change', entry: { state: 'RETRY' } },
    { kind: 'change', entry: { state: 'FAILED' } },
  ]);
});

it('places waits and attempts on one axis without gaps', () => {
  expect(segmentsOf(timelineOf(FAILED_THEN_DELIVERED), 9_999)).toEqual([
    { kind: 'wait', fromMs: 0, toMs: 10 },
    { kind: 'failed', fromMs: 10, toMs: 30, attempt: 1 },
    { kind: 'wait', fromMs: 30, toMs: 1_030 },
    { kind: 'delivered', fromMs: 1_030, toMs: 1_050, attempt: 2 },
  ]);
});

it('shows a running attempt until now', () => {
  expect(segmentsOf(timelineOf([entry('CREATED', 0), entry('ACTIVE', 0)]), 500)).toEqual([
    { kind: 'running', fromMs: 0, toMs: 500, attempt: 1 },
  ]);
});
