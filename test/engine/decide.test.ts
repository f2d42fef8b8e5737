/** The rules of contract M 6.3, 7.3, 8 and 17 as tables: the change that an attempt's outcome causes in its message. */
import { describe, expect, test } from 'vitest';
import { decide } from '../../src/engine/messages/decide.ts';
import type { Claimed, Outcome, Settlement } from '../../src/engine/model.ts';
import type { HeaderMap, MessageSettings, RunSettings } from '../../src/protocol/options/settings.ts';
import { answered, claimed, message, NOW_MS } from './fixtures.ts';

const NON_RETRYABLE: HeaderMap = { 'Upstash-Nonretryable-Error': ['true'] };

function settlementOf(of: Claimed, outcome: Outcome, nowMs = NOW_MS): Settlement {
  const decision = decide(of, outcome, nowMs);
  if (decision.kind !== 'settle') throw new Error(`decided to ${decision.kind}`);
  return decision.settlement;
}

function claimedWith(settings: Partial<MessageSettings>, retried = 0): Claimed {
  return claimed({ message: message({ settings: { dialect: 'upstash', maxRetries: 3, ...settings } }), retried });
}

/** `delivered`, `dead`, or the wait before the retry in milliseconds. */
function verdict(of: Claimed, outcome: Outcome, nowMs = NOW_MS): string | number {
  const { change } = settlementOf(of, outcome, nowMs);
  if (change.next.kind === 'waiting') return change.next.dueAtMs - nowMs;
  return change.deadLetter ? 'dead' : 'delivered';
}

function states(settlement: Settlement): string[] {
  return settlement.change.events.map(({ state }) => state);
}

describe('the meaning of a response', () => {
  test.for([
    ['200 delivers', 200, {}, 'delivered'],
    ['204 delivers', 204, {}, 'delivered'],
    ['299 delivers', 299, {}, 'delivered'],
    ['199 is a failure', 199, {}, 12_000],
    ['300 is a failure', 300, {}, 12_000],
    ['a redirect is a failure and is not followed', 302, { Location: ['https://b.example/'] }, 12_000],
    ['404 is a failure that is retried', 404, {}, 12_000],
    ['500 is a failure that is retried', 500, {}, 12_000],
    ['489 alone is an ordinary failure', 489, {}, 12_000],
    ['489 with the header is final', 489, NON_RETRYABLE, 'dead'],
    ['489 with the header in our own dialect is final', 489, { 'Waypost-Nonretryable-Error': ['true'] }, 'dead'],
    ['the value is read whatever its case', 489, { 'Upstash-Nonretryable-Error': [' TRUE '] }, 'dead'],
    ['489 with another value is an ordinary failure', 489, { 'Upstash-Nonretryable-Error': ['false'] }, 12_000],
    ['the header with another status means nothing', 500, NON_RETRYABLE, 12_000],
    ['the header on a success means nothing', 200, NON_RETRYABLE, 'delivered'],
  ] as const)('%s', ([, status, header, expected]) => {
    expect(verdict(claimed(), answered(status, header as unknown as HeaderMap))).toBe(expected);
  });
});

describe('the error of a redirect', () => {
  function errorOf(status: number, header: HeaderMap, changes: Parameters<typeof message>[0] = {}): string | undefined {
    const { change } = settlementOf(claimed({ message: message(changes) }), answered(status, header));
    return change.events.find(({ state }) => state === 'ERROR')?.detail?.error;
  }
  const START = 'the endpoint responded with status 308, a redirect';

  test.for([
    ['another host', 'https://www.a.example/hook', 'https://www.a.example/hook'],
    ['a path of the same host', '/hook/', 'https://a.example/hook/'],
    ['a path beside the destination', 'other', 'https://a.example/other'],
    ['a host of the same scheme', '//b.example', 'https://b.example/'],
    ['letters in UTF-8', Buffer.from('/Zoë').toString('latin1'), 'https://a.example/Zo%C3%AB'],
    ['letters in Latin-1', '/Zoë', 'https://a.example/Zo%C3%AB'],
  ] as const)('names the address for %s', ([, location, address]) => {
    expect(errorOf(308, { Location: [location] })).toBe(`${START} to ${address}; redirects are not followed`);
  });

  test('names neither credentials nor a query, which may be secret', () => {
    const location = 'https://user:secret@b.example/login?token=secret#secret';
    expect(errorOf(308, { Location: [location] })).toBe(
      `${START} to https://b.example/login?…; redirects are not followed`,
    );
  });

  test.for([
    ['is absent', {}],
    ['is no URL', { Location: ['https://['] }],
    ['is no address for HTTP', { Location: ['javascript:alert(1)'] }],
  ] as const)('names no address when Location %s', ([, header]) => {
    expect(errorOf(308, header as unknown as HeaderMap)).toBe(`${START}; redirects are not followed`);
  });

  test('names no address when the message hides the header', () => {
    const redact = { body: false, headers: ['Location'] };
    const settings = { dialect: 'upstash', maxRetries: 3, redact } as const;
    expect(errorOf(308, { Location: ['/secret'] }, { settings })).toBe(`${START}; redirects are not followed`);
  });

  test('is bounded, whatever the length of the address', () => {
    const error = errorOf(308, { Location: [`/${'a'.repeat(15_000)}`] });
    expect(error?.length).toBeLessThan(1_100);
    expect(error).toMatch(/a…; redirects are not followed$/);
  });

  test.for([201, 304, 404])('is not named for status %i, which redirects nothing', (status) => {
    expect(errorOf(status, { Location: ['/elsewhere'] }) ?? '').not.toContain('redirect');
  });
});

describe('the number of retries', () => {
  test.for([
    ['none are allowed', 0, 0, 'dead'],
    ['the first of one', 1, 0, 12_000],
    ['the only one is used up', 1, 1, 'dead'],
    ['the last of three', 3, 2, 1_808_000],
    ['all three are used up', 3, 3, 'dead'],
    ['more were made than are allowed now', 1, 5, 'dead'],
  ] as const)('when %s', ([, maxRetries, retried, expected]) => {
    expect(verdict(claimedWith({ maxRetries }, retried), answered(500))).toBe(expected);
  });

  test('each retry is counted', () => {
    const { change } = settlementOf(claimedWith({}, 1), answered(500));
    expect(change.next).toEqual({ kind: 'waiting', dueAtMs: NOW_MS + 148_000, retried: 2 });
  });
});

describe('the wait before a retry', () => {
  test.for([
    ['the default back-off before the first retry', undefined, 0, {}, 12_000],
    ['the default back-off before the second', undefined, 1, {}, 148_000],
    ['the default back-off is at most a day', undefined, 8, {}, 86_400_000],
    ['the publisher’s expression instead of the default', '1000 * (1 + retried)', 2, {}, 3_000],
    ['an expression without a finite result falls back to the default', '1 / retried', 0, {}, 12_000],
    ['a negative result means at once', '0 - 5', 0, {}, 0],
    ['Retry-After in seconds before the expression', '1000', 0, { 'Retry-After': ['7'] }, 7_000],
    ['Retry-After: 0 leaves the back-off', undefined, 0, { 'Retry-After': ['0'] }, 12_000],
    ['a date counts from now', undefined, 0, { 'Retry-After': ['Thu, 01 Jan 2026 00:01:00 GMT'] }, 60_000],
    ['a date in the past leaves the expression', '500', 0, { 'Retry-After': ['Wed, 31 Dec 2025 00:00:00 GMT'] }, 500],
    ['a duration as Go writes it', undefined, 0, { 'X-Ratelimit-Reset': ['6m5s'] }, 365_000],
    ['the first usable header of the family', '1', 0, { 'Retry-After': ['soon'], 'X-Ratelimit-Reset': ['3'] }, 3_000],
    ['more than a day means a day', '500', 0, { 'Retry-After': ['86401'] }, 86_400_000],
    ['an epoch time asks for nothing', undefined, 0, { 'X-Ratelimit-Reset': ['1767225600'] }, 12_000],
  ] as const)('%s', ([, expression, retried, header, expected]) => {
    const settings = expression === undefined ? {} : { retryDelayExpression: expression };
    const of = claimedWith({ ...settings, maxRetries: 10 }, retried);
    expect(verdict(of, answered(429, header as unknown as HeaderMap))).toBe(expected);
  });

  test('a date counts from the wall clock, which may be behind the shared time', () => {
    const leadMs = 3_600_000;
    const limited = answered(429, { 'Retry-After': ['Thu, 01 Jan 2026 00:01:00 GMT'] });
    const decision = decide(claimed(), limited, NOW_MS + leadMs, leadMs);
    expect(decision).toMatchObject({ settlement: { change: { next: { dueAtMs: NOW_MS + leadMs + 60_000 } } } });
  });

  test('without a response, the wait is the publisher’s, for nobody requested another', () => {
    const outcome: Outcome = { kind: 'unreachable', reason: 'timeout', error: 'timed out' };
    expect(verdict(claimedWith({ retryDelayExpression: '250' }), outcome)).toBe(250);
  });
});

describe('the meaning of no response', () => {
  test.for(['blocked', 'dns', 'refused', 'tls', 'reset', 'timeout', 'malformed'] as const)(
    'an attempt that failed by %s is retried',
    (reason) => {
      expect(verdict(claimed(), { kind: 'unreachable', reason, error: reason })).toBe(12_000);
    },
  );

  test('a request that cannot be expressed in HTTP is never repeated', () => {
    expect(verdict(claimed(), { kind: 'unreachable', reason: 'unsendable', error: 'bad header' })).toBe('dead');
  });

  test('our own shutdown is not counted', () => {
    expect(decide(claimed(), { kind: 'interrupted' }, NOW_MS)).toEqual({ kind: 'release' });
  });
});

describe('the entries of the logs and the DLQ', () => {
  test('a delivery is one entry and no dead letter', () => {
    const { change } = settlementOf(claimed(), answered(200));
    expect(change).toEqual({
      next: { kind: 'finished' },
      events: [{ atMs: NOW_MS, state: 'DELIVERED', responseStatus: 200 }],
    });
  });

  test('a failure with retries left is ERROR with the response, then RETRY, both with the planned time', () => {
    const answer: Outcome = { kind: 'responded', status: 503, header: { Via: ['x'] }, body: Uint8Array.of(1, 2) };
    const { change } = settlementOf(claimed(), answer);
    const nextDeliveryTimeMs = NOW_MS + 12_000;
    const response = { status: 503, header: { Via: ['x'] }, body: Uint8Array.of(1, 2) };
    expect(change.events).toEqual([
      { atMs: NOW_MS, state: 'ERROR', detail: { error: expect.stringContaining('503'), nextDeliveryTimeMs, response } },
      { atMs: NOW_MS, state: 'RETRY', detail: { nextDeliveryTimeMs } },
    ]);
    expect(change.deadLetter).toBeUndefined();
  });

  test('the last failure is ERROR, FAILED and a dead letter with the response', () => {
    const answer: Outcome = { kind: 'responded', status: 500, header: { Via: ['x'] }, body: Uint8Array.of(9) };
    const settlement = settlementOf(claimedWith({ maxRetries: 2 }, 2), answer, NOW_MS + 5);
    expect(states(settlement)).toEqual(['ERROR', 'FAILED']);
    expect(settlement.change.deadLetter).toEqual({
      failedAtMs: NOW_MS + 5,
      retried: 2,
      responseStatus: 500,
      responseHeader: { Via: ['x'] },
      responseBody: Uint8Array.of(9),
    });
  });

  test('a dead letter without a response has status 0 and the error as its body', () => {
    const outcome: Outcome = { kind: 'unreachable', reason: 'refused', error: 'connection refused' };
    const { change } = settlementOf(claimedWith({ maxRetries: 0 }), outcome);
    expect(change.deadLetter).toEqual({
      failedAtMs: NOW_MS,
      retried: 0,
      responseStatus: 0,
      responseBody: new TextEncoder().encode('connection refused'),
    });
    expect(change.events[0]?.detail).toEqual({ error: 'connection refused' });
  });

  test('a failure with retries left ends as CANCELED when a cancel was requested since', () => {
    const alternative = settlementOf(claimed(), answered(500)).changeIfCancelRequested;
    expect(alternative?.next).toEqual({ kind: 'finished' });
    expect(alternative?.events.map(({ state }) => state)).toEqual(['ERROR', 'CANCELED']);
    expect(alternative?.events[0]?.detail?.nextDeliveryTimeMs).toBeUndefined();
    expect(alternative?.deadLetter).toBeUndefined();
  });

  test.for([
    ['a delivery', claimed(), answered(200)],
    ['a final failure', claimedWith({ maxRetries: 0 }), answered(500)],
  ] as const)('%s is unchanged when a cancel was requested since', ([, of, outcome]) => {
    expect(settlementOf(of, outcome).changeIfCancelRequested).toBeUndefined();
  });

  test('the settlement names its claim', () => {
    const of = claimed({ message: message({ key: 42, projectId: 3 }), claimToken: 99 });
    expect(settlementOf(of, answered(200))).toMatchObject({ key: 42, projectId: 3, claimToken: 99 });
  });
});

describe('a run whose code has changed', () => {
  const CHANGED: HeaderMap = { 'Upstash-Workflow-Code-Changed': ['true'] };
  const ofRun = (changes: Partial<RunSettings> = {}) =>
    claimedWith({
      maxRetries: 0,
      run: {
        ...{ key: 1, id: 'wfr_1', createdAtMs: NOW_MS, url: 'https://a.example/wf' },
        features: [],
        callType: 'step',
        ...changes,
      },
    });

  test.for([
    ['is parked for a minute first', {}, 409, CHANGED, 60_000],
    ['is parked when a call brought its answer', { callType: 'fromCallback' }, 409, CHANGED, 60_000],
    ['is parked with the header in our own dialect', {}, 409, { 'Waypost-Workflow-Code-Changed': [' TRUE'] }, 60_000],
    ['fails with another value', {}, 409, { 'Upstash-Workflow-Code-Changed': ['false'] }, 'dead'],
    ['fails with another status', {}, 500, CHANGED, 'dead'],
    ['fails with a success', {}, 200, CHANGED, 'delivered'],
    ['fails without the header', {}, 409, {}, 'dead'],
    ['fails where the library is not known yet', { init: 'unknown' }, 409, CHANGED, 'dead'],
    ['goes on where somebody else was called', { callType: 'toCallback' }, 409, CHANGED, 'delivered'],
  ] as const)('%s', ([, run, status, header, expected]) => {
    expect(verdict(ofRun(run), answered(status, header as unknown as HeaderMap))).toBe(expected);
  });

  test.for([
    [JSON.stringify({ error: 'CodeChangedError', message: 'Both sides.' }), 'Both sides.'],
    [JSON.stringify({ message: 'x'.repeat(2_000) }), 'x'.repeat(1_000)],
    [JSON.stringify({ message: 'x'.repeat(70_000) }), 'The code of the workflow has changed.'],
    [JSON.stringify({ message: '' }), 'The code of the workflow has changed.'],
    [JSON.stringify({ message: 7 }), 'The code of the workflow has changed.'],
    ['null', 'The code of the workflow has changed.'],
    ['no JSON', 'The code of the workflow has changed.'],
  ])('is parked with the message of the response: %s', ([text, error]) => {
    const answer = { ...answered(409, CHANGED), body: new TextEncoder().encode(text) } as Outcome;
    const { change, changeIfCancelRequested } = settlementOf({ ...ofRun(), retried: 2, parkings: 5 }, answer);
    const dueAtMs = NOW_MS + 32 * 60_000;
    expect(change.next).toEqual({ kind: 'waiting', dueAtMs, retried: 2, parkings: 6 });
    expect(change.events).toMatchObject([{ state: 'STEP_PARKED', detail: { error, nextDeliveryTimeMs: dueAtMs } }]);
    expect(changeIfCancelRequested?.events.at(-1)?.state).toBe('CANCELED');
  });

  test('is parked again after another outcome', () => {
    const { change } = settlementOf({ ...claimed(), parkings: 3 }, answered(500));
    expect(change.next).toEqual({ kind: 'waiting', dueAtMs: NOW_MS + 12_000, retried: 1 });
  });
});

test('the settlement of a message that shares nothing is marked, and no other is', () => {
  expect(settlementOf(claimed({ isAlone: true }), answered(200)).isAlone).toBe(true);
  expect(settlementOf(claimed(), answered(200))).not.toHaveProperty('isAlone');
});

describe('a clock that was set back during the attempt', () => {
  test('does not put the outcome before the attempt', () => {
    const settlement = settlementOf(claimed(), answered(500), NOW_MS - 3_600_000);
    expect(settlement.change.events.map(({ atMs }) => atMs)).toEqual([NOW_MS, NOW_MS]);
    expect(settlement.change.next).toEqual({ kind: 'waiting', dueAtMs: NOW_MS + 12_000, retried: 1 });
  });
});
