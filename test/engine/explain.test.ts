/** P14: one sentence explains why an unfinished message waits, or how a finished one ended. */
import { expect, test } from 'vitest';
import type { FlowKey } from '../../src/engine/lanes/lanes.ts';
import type { LiveMessage } from '../../src/engine/lists/unfinished.ts';
import { explain } from '../../src/engine/messages/explain.ts';
import { dlqIdIn, explainFinished } from '../../src/engine/messages/explain-finished.ts';
import type { LogDetail, LogState, MessageId } from '../../src/engine/model.ts';
import type { LogEntry } from '../../src/engine/stores.ts';
import { message, NOW_MS } from './fixtures.ts';

const SOON_MS = NOW_MS + 60_000;

test.for([
  ['project', 'project_busy', 'its project has used up its share of the slots.'],
  ['unknown', 'endpoint_unproven', 'has not responded recently'],
  ['origin', 'endpoint_busy', 'one of its attempts in flight ends'],
] as const)('a message in a backlog that the limit of its %s keeps waiting is explained', ([held, reason, part]) => {
  const state = { kind: 'origin', dueAtMs: NOW_MS } as const;
  const live: LiveMessage = { message: message(), retried: 1, cancelRequested: false, state };
  const explanation = explain(live, NOW_MS, { limitReason: held });
  expect(explanation).toMatchObject({ reason, dueAtMs: NOW_MS, retried: 1 });
  expect(explanation.sentence).toContain(part);
  expect(explanation.sentence).toContain('https://a.example');
});

test.for([
  ['a delayed message', { state: { kind: 'due', dueAtMs: SOON_MS } }, 'delayed', '2026-01-01T00:01:00.000Z'],
  ['a parked run', { state: { kind: 'due', dueAtMs: SOON_MS }, isParked: true }, 'parked', 'has changed'],
  [
    'a parked run that is due',
    { state: { kind: 'due', dueAtMs: NOW_MS }, isParked: true },
    'due',
    'a free delivery slot',
  ],
  ['a retry', { state: { kind: 'due', dueAtMs: SOON_MS }, retried: 2 }, 'retrying', 'retry 2'],
  ['a message that is due', { state: { kind: 'due', dueAtMs: NOW_MS } }, 'due', 'a free delivery slot'],
  ['a message in an endpoint backlog', { state: { kind: 'origin', dueAtMs: NOW_MS } }, 'endpoint_busy', 'a.example'],
  ['a running attempt', { state: { kind: 'claimed', claimedAtMs: NOW_MS } }, 'attempting', 'T00:00:00.000Z'],
  [
    'a cancel during an attempt',
    { state: { kind: 'claimed', claimedAtMs: NOW_MS }, cancelRequested: true },
    'cancelling',
    'will not be retried',
  ],
] as const)('%s is explained', ([, changes, reason, part]) => {
  const live: LiveMessage = { message: message(), retried: 0, cancelRequested: false, ...changes };
  const explanation = explain(live, NOW_MS);
  expect(explanation.reason).toBe(reason);
  expect(explanation.sentence).toContain(part);
  expect(explanation.sentence).toMatch(/^[A-Z].*\.$/);
});

test('a retry names the failure of the last attempt', () => {
  const state = { kind: 'due', dueAtMs: SOON_MS } as const;
  const live: LiveMessage = { message: message(), retried: 1, cancelRequested: false, state };
  expect(explain(live, NOW_MS, { failure: 'connection refused' }).sentence).toBe(
    'Waits for retry 1 at 2026-01-01T00:01:00.000Z: connection refused.',
  );
});

const QUEUED = { kind: 'queue', dueAtMs: NOW_MS, isPaused: false, hasPermit: false, ahead: 2, parallelism: 3 } as const;

test('a message in a blocked queue names the message that blocks it', () => {
  const blockedBy = { messageId: 'msg_1' as MessageId, dueAtMs: SOON_MS };
  const live: LiveMessage = { message: message(), retried: 0, cancelRequested: false, state: { ...QUEUED, blockedBy } };
  const { sentence, ...fields } = explain(live, NOW_MS);
  expect(fields).toMatchObject({ reason: 'queued', ahead: 2, blockedBy });
  expect(sentence).toContain('The queue is blocked until 2026-01-01T00:01:00.000Z, when msg_1 is due.');
});

test.for([
  [QUEUED, 'queued', 'Waits in queue q behind 2 messages (parallelism 3).'],
  [{ ...QUEUED, ahead: 1 }, 'queued', 'Waits in queue q behind 1 message (parallelism 3).'],
  [{ ...QUEUED, isPaused: true }, 'queue_paused', 'Its queue q is paused; 2 messages ahead of it.'],
  [{ ...QUEUED, isPaused: true, hasPermit: true }, 'queue_paused', 'Its queue q is paused; its delivery has started.'],
] as const)('one in a queue is explained: %j', ([state, reason, sentence]) => {
  const settings = { dialect: 'upstash', maxRetries: 3, queueName: 'q' } as const;
  const live: LiveMessage = { message: message({ settings }), retried: 0, cancelRequested: false, state };
  const { ahead } = state;
  expect(explain(live, NOW_MS)).toEqual({ reason, sentence, queueName: 'q', ahead, dueAtMs: NOW_MS, retried: 0 });
});

const KEY: FlowKey = {
  key: 'k',
  waitListSize: 5,
  inFlight: 2,
  periodS: 60,
  rateCount: 0,
  isPaused: false,
  isParallelismPinned: false,
  isRatePinned: false,
};
const SPENT = { rate: 7, rateCount: 7, periodStartedAtMs: NOW_MS - 1_000 };

test.for([
  [{ isPaused: true }, 'key_paused', 'The flow-control key k is paused.'],
  [{ parallelism: 2 }, 'key_full', 'The flow-control key k has 2 of 2 attempts in flight; 5 waiting.'],
  [{ parallelism: 1 }, 'key_full', 'The flow-control key k has 2 of 1 attempts in flight; 5 waiting.'],
  [{ parallelism: 3 }, 'key_turn', 'The flow-control key k has capacity; its next message is about to be sent.'],
  [{}, 'key_turn', 'The flow-control key k has capacity; its next message is about to be sent.'],
  [
    SPENT,
    'key_rate',
    'The flow-control key k has started 7 of 7 attempts in its period, which ends at 2026-01-01T00:00:59.000Z.',
  ],
  [
    { ...SPENT, rateCount: 6 },
    'key_turn',
    'The flow-control key k has capacity; its next message is about to be sent.',
  ],
  [
    { ...SPENT, periodStartedAtMs: NOW_MS - 60_000 },
    'key_turn',
    'The flow-control key k has capacity; its next message is about to be sent.',
  ],
] as const)('a message that waits for a key is explained: %j', ([changes, reason, sentence]) => {
  const state = { kind: 'flow', dueAtMs: NOW_MS, key: { ...KEY, ...changes } } as const;
  const live: LiveMessage = { message: message(), retried: 0, cancelRequested: false, state };
  expect(explain(live, NOW_MS)).toEqual({ reason, sentence, flowControlKey: 'k', dueAtMs: NOW_MS, retried: 0 });
});

test('a message with a key that is not due yet waits for its due time', () => {
  const state = { kind: 'flow', dueAtMs: SOON_MS, key: { ...KEY, isPaused: true } } as const;
  const live: LiveMessage = { message: message(), retried: 1, cancelRequested: false, state };
  expect(explain(live, NOW_MS)).toMatchObject({ reason: 'retrying', dueAtMs: SOON_MS, flowControlKey: 'k' });
});

test('a message whose project has reached its limit of attempts in flight is explained', () => {
  const state = { kind: 'project', dueAtMs: NOW_MS } as const;
  const live: LiveMessage = { message: message(), retried: 0, cancelRequested: false, state };
  expect(explain(live, NOW_MS)).toMatchObject({ reason: 'parallelism', dueAtMs: NOW_MS });
});

/** The events, latest first, a second apart. */
function logOf(...states: (LogState | [LogState, LogDetail])[]): LogEntry[] {
  return states.map((entry, index) => {
    const [state, detail] = typeof entry === 'string' ? [entry, undefined] : entry;
    return { atMs: NOW_MS - index * 1_000, state, message: message(), ...(detail && { detail }) };
  });
}

const DLQ_ID = `${NOW_MS}-1`;
const REFUSED: [LogState, LogDetail] = ['ERROR', { error: 'connection refused' }];

test.for([
  [logOf('DELIVERED', 'ACTIVE', 'CREATED'), 'delivered', 0, 'Delivered at 2026-01-01T00:00:00.000Z by attempt 1.'],
  [logOf('DELIVERED', 'RETRY', 'ERROR'), 'delivered', 1, 'Delivered at 2026-01-01T00:00:00.000Z by attempt 2.'],
  [logOf('CANCELED', 'RETRY'), 'cancelled', 1, 'Cancelled at 2026-01-01T00:00:00.000Z.'],
  [
    logOf('FAILED', REFUSED, 'CREATED'),
    'dead',
    0,
    'Dead since 2026-01-01T00:00:00.000Z after 1 attempt: connection refused.',
  ],
  [
    logOf('FAILED', REFUSED, 'RETRY', ['ERROR', { error: 'status 500' }], 'CREATED'),
    'dead',
    1,
    'Dead since 2026-01-01T00:00:00.000Z after 2 attempts: connection refused.',
  ],
  [logOf('FAILED', 'ERROR'), 'dead', 0, 'Dead since 2026-01-01T00:00:00.000Z after 1 attempt: cause unknown.'],
] as const)('a finished message is explained: %j', ([log, reason, retried, sentence]) => {
  const known = { reason, atMs: NOW_MS, retried };
  if (reason !== 'dead') {
    return expect(explainFinished(log, { isInDlq: false })).toEqual({ ...known, sentence });
  }
  expect(explainFinished(log, { isInDlq: true })).toEqual({
    ...known,
    sentence: `${sentence} It is in the DLQ as ${DLQ_ID}.`,
    dlqId: DLQ_ID,
  });
  expect(explainFinished(log, { isInDlq: false })).toEqual({
    ...known,
    sentence: `${sentence} It is not in the DLQ.`,
  });
});

test('a log without an end explains nothing', () => {
  expect(explainFinished([], { isInDlq: false })).toBeUndefined();
  expect(explainFinished(logOf('RETRY', 'ERROR', 'CREATED'), { isInDlq: false })).toBeUndefined();
});

test('a log names the DLQ id of its message, if that is dead', () => {
  expect(dlqIdIn(logOf('FAILED', 'ERROR'))).toBe(DLQ_ID);
  expect(dlqIdIn(logOf('DELIVERED', 'ERROR'))).toBeUndefined();
  expect(dlqIdIn([])).toBeUndefined();
});
