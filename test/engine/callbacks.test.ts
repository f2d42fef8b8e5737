/** The rules of contract M 9 as tables: which callbacks follow from an attempt, and their content and settings. */
import { describe, expect, test } from 'vitest';
import { decide } from '../../src/engine/messages/decide.ts';
import type { Claimed, FollowUp, Message, Outcome } from '../../src/engine/model.ts';
import type { CallbackSettings, MessageSettings } from '../../src/protocol/options/settings.ts';
import { answered, claimed, message, NOW_MS } from './fixtures.ts';

const CALLBACK: CallbackSettings = { url: 'https://cb.example/done', method: 'POST', header: {} };
const FAILURE: CallbackSettings = { url: 'https://failed.example/dead', method: 'POST', header: {} };
const TIMED_OUT: Outcome = { kind: 'unreachable', reason: 'timeout', error: 'no answer within 5 s' };
const REFUSED: Outcome = { kind: 'unreachable', reason: 'blocked', error: 'the address is not allowed' };
const AT_MS = NOW_MS + 1_000;

function claimedWith(settings: Partial<MessageSettings>, changes: Partial<Message> = {}, retried = 0): Claimed {
  const full = { dialect: 'upstash' as const, maxRetries: 3, ...settings };
  return claimed({ message: message({ ...changes, settings: full }), retried });
}

function followsOf(of: Claimed, outcome: Outcome, atMs = AT_MS): FollowUp[] {
  const decision = decide(of, outcome, atMs);
  return decision.kind === 'settle' ? decision.follows : [];
}

function onlyFollow(of: Claimed, outcome: Outcome): FollowUp {
  const [first, second] = followsOf(of, outcome);
  if (!first || second) throw new Error('not exactly one message follows');
  return first;
}

function payloadOf({ body }: FollowUp): Record<string, unknown> {
  return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

describe('when a callback is sent (contract M 9.1)', () => {
  const both = { callback: CALLBACK, failureCallback: FAILURE };
  test.for<[string, Partial<MessageSettings>, number, Outcome, string[]]>([
    ['nothing is asked for', {}, 0, answered(200), []],
    ['a delivery fires the callback', both, 0, answered(200), [CALLBACK.url]],
    ['a failure that is retried fires the callback', both, 0, answered(500), [CALLBACK.url]],
    ['an attempt without an answer does', both, 1, TIMED_OUT, [CALLBACK.url]],
    ['an attempt that is refused before sending counts as one', both, 1, REFUSED, [CALLBACK.url]],
    ['the last failure fires both', both, 3, answered(500), [CALLBACK.url, FAILURE.url]],
    ['the last failure without an answer does', both, 3, REFUSED, [CALLBACK.url, FAILURE.url]],
    ['a failure callback alone waits for the end', { failureCallback: FAILURE }, 2, answered(500), []],
    ['a failure callback alone fires at the end', { failureCallback: FAILURE }, 3, answered(500), [FAILURE.url]],
    ['a failure callback is silent about a delivery', { failureCallback: FAILURE }, 3, answered(200), []],
    ['our own shutdown is no attempt', both, 0, { kind: 'interrupted' }, []],
  ])('%s', ([, settings, retried, outcome, urls]) => {
    expect(followsOf(claimedWith(settings, {}, retried), outcome).map(({ url }) => url)).toEqual(urls);
  });

  test('a failure that forbids retries sends both at once', () => {
    const outcome = answered(489, { 'Upstash-Nonretryable-Error': ['true'] });
    expect(followsOf(claimedWith(both), outcome)).toHaveLength(2);
  });

  test('no messages follow from the change of a cancel', () => {
    const decision = decide(claimedWith(both), answered(500), AT_MS);
    expect(decision).toMatchObject({ kind: 'settle', follows: [{ url: CALLBACK.url }] });
    expect(decision).not.toHaveProperty('settlement.changeIfCancelRequested.follows');
  });
});

describe('the content of a callback (contract M 9.3)', () => {
  const source: Partial<Message> = {
    header: { 'X-Key': ['a', 'b'] },
    body: new TextEncoder().encode('häl'),
    method: 'PUT',
    notBeforeMs: NOW_MS + 500,
    callerIp: '192.0.2.1',
  };

  test('every field of a group’s message', () => {
    const settings = { callback: CALLBACK, topicName: 'group', endpointName: 'one', scheduleId: 'scd_1' };
    const outcome: Outcome = { ...answered(201, { Date: ['today'] }), body: Buffer.from('fine') } as Outcome;
    expect(payloadOf(onlyFollow(claimedWith(settings, source, 2), outcome))).toEqual({
      status: 201,
      header: { Date: ['today'] },
      body: base64('fine'),
      retried: 2,
      maxRetries: 3,
      sourceMessageId: 'msg_1',
      topicName: 'group',
      endpointName: 'one',
      url: 'https://a.example/hook',
      method: 'PUT',
      sourceHeader: { 'X-Key': ['a', 'b'] },
      sourceBody: base64('häl'),
      notBefore: NOW_MS + 500,
      createdAt: NOW_MS,
      scheduleId: 'scd_1',
      callerIP: '192.0.2.1',
    });
  });

  test('only the fields that are always there, for a plain message with an empty response', () => {
    expect(payloadOf(onlyFollow(claimedWith({ callback: CALLBACK }), answered(204)))).toEqual({
      status: 204,
      header: {},
      body: '',
      retried: 0,
      maxRetries: 3,
      sourceMessageId: 'msg_1',
      url: 'https://a.example/hook',
      method: 'POST',
      sourceHeader: {},
      sourceBody: '',
      notBefore: NOW_MS,
      createdAt: NOW_MS,
    });
  });

  test('status 0 and the error text when there was no response', () => {
    const payload = payloadOf(onlyFollow(claimedWith({ callback: CALLBACK }), TIMED_OUT));
    expect(payload).toMatchObject({ status: 0, header: {}, body: base64('no answer within 5 s') });
  });

  test('the id of the DLQ entry, only in the failure callback', () => {
    const of = claimedWith({ callback: CALLBACK, failureCallback: FAILURE, maxRetries: 0 }, { key: 42 });
    const [callback, failure] = followsOf(of, answered(500)).map(payloadOf);
    expect(callback).not.toHaveProperty('dlqId');
    expect(failure).toEqual({ ...callback, dlqId: `${AT_MS}-42` });
  });

  test('the DLQ id of the dead letter also when the clock was set back since', () => {
    const of = claimedWith({ failureCallback: FAILURE, maxRetries: 0 });
    const decision = decide(of, answered(500), NOW_MS - 5_000);
    if (decision.kind !== 'settle') throw new Error('not settled');
    const failedAtMs = decision.settlement.change.deadLetter?.failedAtMs;
    expect(decision.follows.map(payloadOf)).toMatchObject([{ dlqId: `${failedAtMs}-1` }]);
  });

  test('bytes that are no text, and bodies of several chunks, unchanged', () => {
    const body = Uint8Array.from({ length: 7_000_001 }, (_, index) => index % 251);
    const { sourceBody } = payloadOf(onlyFollow(claimedWith({ callback: CALLBACK }, { body }), answered(200)));
    expect(Buffer.from(String(sourceBody), 'base64').equals(body)).toBe(true);
  });
});

describe('the message of a callback (contract M 9.2, 9.4)', () => {
  test('due at once, in JSON, with only the dialect, retries and caller of its source', () => {
    const settings: Partial<MessageSettings> = {
      dialect: 'waypost',
      maxRetries: 7,
      retryDelayExpression: '1',
      timeoutMs: 5,
      labels: ['l'],
      flowControl: { key: 'k', rate: 1, periodS: 1 },
      topicName: 'group',
      queueName: 'q',
      scheduleId: 's',
      callback: CALLBACK,
    };
    const source = { projectId: 9, callerIp: '192.0.2.1', header: { 'X-Key': ['a'] } };
    expect(onlyFollow(claimedWith(settings, source), answered(200))).toEqual({
      projectId: 9,
      url: CALLBACK.url,
      origin: 'https://cb.example',
      method: 'POST',
      header: { 'Content-Type': ['application/json'] },
      body: expect.any(Uint8Array),
      createdAtMs: AT_MS,
      notBeforeMs: AT_MS,
      callerIp: '192.0.2.1',
      settings: { dialect: 'waypost', maxRetries: 7 },
    });
  });

  test('with every option of its own (116)', () => {
    const own = {
      maxRetries: 0,
      retryDelayExpression: '100',
      timeoutMs: 1_000,
      labels: ['told'],
      redact: { body: false, headers: ['X'] },
      flowControl: { key: 'k', parallelism: 2, periodS: 1 },
      callback: CALLBACK,
      failureCallback: FAILURE,
    };
    const callback: CallbackSettings = { ...own, url: 'https://x.example/', method: 'GET', header: { X: ['1'] } };
    const followUp = onlyFollow(claimedWith({ callback }), answered(200));
    expect(followUp).toMatchObject({ method: 'GET', header: { X: ['1'], 'Content-Type': ['application/json'] } });
    expect(followUp.settings).toEqual({ dialect: 'upstash', ...own });
  });

  test('with a replaced content type', () => {
    const callback = { ...CALLBACK, header: { 'Content-Type': ['text/x'] } };
    expect(onlyFollow(claimedWith({ callback }), answered(200)).header).toEqual({ 'Content-Type': ['text/x'] });
  });

  test('callbacks of callbacks end with the last given level', () => {
    const third = { ...CALLBACK, url: 'https://third.example/' };
    const second = { ...CALLBACK, url: 'https://second.example/', callback: third };
    let current = claimedWith({ callback: { ...CALLBACK, callback: second } });
    const urls: string[] = [];
    for (let key = 2; key < 10; key += 1) {
      const [followUp] = followsOf(current, answered(200));
      if (!followUp) break;
      urls.push(followUp.url);
      current = claimed({ message: { ...followUp, key, id: `msg_${key}` } });
    }
    expect(urls).toEqual([CALLBACK.url, second.url, third.url]);
  });
});

describe('redaction in a callback because of its source (contract M 19.4)', () => {
  const own = { body: false, headers: ['X'] };
  test.for<[string, MessageSettings['redact'], MessageSettings['redact'], MessageSettings['redact']]>([
    ['nothing, when the source hides nothing', undefined, undefined, undefined],
    ['what it says itself', undefined, own, own],
    ['its body, when the source hides its body', { body: true, headers: [] }, undefined, { body: true, headers: [] }],
    [
      'its body and that header, when the source hides a header',
      { body: false, headers: ['Authorization'] },
      undefined,
      { body: true, headers: ['Authorization'] },
    ],
    ['both together', { body: false, headers: 'all' }, own, { body: true, headers: 'all' }],
  ])('%s', ([, source, ofCallback, expected]) => {
    const callback: CallbackSettings = ofCallback ? { ...CALLBACK, redact: ofCallback } : CALLBACK;
    const { settings } = onlyFollow(claimedWith(source ? { redact: source, callback } : { callback }), answered(200));
    expect(settings.redact).toEqual(expected);
  });

  test('the payload itself is unchanged', () => {
    const redact = { body: true, headers: 'all' as const };
    const of = claimedWith({ redact, callback: CALLBACK }, { header: { A: ['1'] }, body: Buffer.from('secret') });
    const payload = payloadOf(onlyFollow(of, answered(200)));
    expect(payload).toMatchObject({ sourceHeader: { A: ['1'] }, sourceBody: base64('secret') });
  });
});
