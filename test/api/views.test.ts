import { Value } from '@sinclair/typebox/value';
import { describe, expect, it } from 'vitest';
import { deadMessageView, logEntryView, messageView } from '../../src/api/messages/views.ts';
import { DeadMessageSchema, LogEntrySchema, MessageSchema } from '../../src/api/schemas.ts';
import type { Message } from '../../src/engine/model.ts';
import { newHeaderMap } from '../../src/protocol/headers.ts';
import type { MessageSettings } from '../../src/protocol/options/settings.ts';

function headerMap(entries: Record<string, string[]>): Message['header'] {
  return Object.assign(newHeaderMap(), entries);
}

function messageWith(settings: Partial<MessageSettings>, body = 'text'): Message {
  return {
    key: 7,
    id: 'msg_7',
    projectId: 1,
    url: 'https://example.com/',
    origin: 'https://example.com',
    method: 'POST',
    header: headerMap({ 'X-A': ['1', '2'] }),
    body: Buffer.from(body),
    createdAtMs: 1000,
    notBeforeMs: 1000,
    settings: { dialect: 'upstash', maxRetries: 3, ...settings },
  };
}

const shown = (view: object): unknown => JSON.parse(JSON.stringify(view));
const callback = (url: string) => ({ url, method: 'POST' as const, header: headerMap({ B: ['b'] }) });

const EVERYTHING: Partial<MessageSettings> = {
  timeoutMs: 5000,
  retryDelayExpression: '1000',
  labels: ['a', 'b'],
  flowControl: { key: 'k', parallelism: 2, periodS: 1 },
  callback: callback('https://example.com/cb'),
  failureCallback: callback('https://example.com/fcb'),
  topicName: 't',
  endpointName: 'e',
  queueName: 'q',
  scheduleId: 's',
};

describe('views', () => {
  it('show a bare message without any optional field', () => {
    const bare = { ...messageWith({}, ''), header: newHeaderMap() };
    expect(shown(messageView(bare))).toEqual({
      messageId: 'msg_7',
      url: 'https://example.com/',
      method: 'POST',
      maxRetries: 3,
      createdAt: 1000,
      notBefore: 1000,
    });
  });

  it('show everything under each of its names', () => {
    const message = { ...messageWith(EVERYTHING), callerIp: '192.0.2.1' };
    const view = shown(messageView(message));
    expect(view).toMatchObject({
      callbackHeader: { B: ['b'] },
      failureCallbackHeader: { B: ['b'] },
      flowControlKey: 'k',
      parallelism: 2,
      period: 1,
      callerIP: '192.0.2.1',
      callerIp: '192.0.2.1',
      timeout: 5000,
    });
    expect(view).not.toHaveProperty('rate');
    expect([...Value.Errors(MessageSchema, view)]).toEqual([]);
    const entry = shown(logEntryView({ atMs: 5, state: 'CREATED', message }));
    expect(entry).toMatchObject({
      callbackHeaders: { B: ['b'] },
      retryDelayExpression: '1000',
      retryDelayExpr: '1000',
    });
    expect([...Value.Errors(LogEntrySchema, entry)]).toEqual([]);
  });

  it('hide headers in callbacks too, but not the responses of endpoints (contract M 19)', () => {
    const message = messageWith({ ...EVERYTHING, redact: { body: true, headers: 'all' } });
    const deadLetter = { failedAtMs: 9, retried: 0, responseStatus: 500, responseBody: Buffer.from('open') };
    const view = shown(
      deadMessageView({
        dlqId: '9-7',
        message,
        deadLetter: { ...deadLetter, responseHeader: headerMap({ C: ['c'] }) },
      }),
    );
    expect(view).toMatchObject({
      body: expect.stringMatching(/^REDACTED:/),
      header: { 'X-A': [expect.stringMatching(/^REDACTED:/), expect.stringMatching(/^REDACTED:/)] },
      callbackHeader: { B: [expect.stringMatching(/^REDACTED:/)] },
      responseBody: 'open',
      responseHeader: { C: ['c'] },
    });
    expect([...Value.Errors(DeadMessageSchema, view)]).toEqual([]);
  });

  it('hide in the header map of a callback what the callback itself hides (contract M 19)', () => {
    const own = { ...callback('https://example.com/cb'), redact: { body: false, headers: ['B'] } };
    const message = messageWith({ ...EVERYTHING, callback: own });
    const hidden = { B: [expect.stringMatching(/^REDACTED:/)] };
    expect(shown(messageView(message))).toMatchObject({ callbackHeader: hidden, failureCallbackHeader: { B: ['b'] } });
    expect(shown(logEntryView({ atMs: 5, state: 'CREATED', message }))).toMatchObject({ callbackHeaders: hidden });
  });

  it('show bytes that are not text as base64, and an empty body not at all, also when it is redacted', () => {
    const redact = { body: true, headers: [] };
    expect(shown(messageView(messageWith({ redact }, '')))).not.toHaveProperty('body');
    const deadLetter = { failedAtMs: 9, retried: 0, responseStatus: 0, responseBody: Buffer.from([0xff]) };
    const view = shown(deadMessageView({ dlqId: '9-7', message: messageWith({}), deadLetter }));
    expect(view).toMatchObject({ responseStatus: 0, responseBodyBase64: '/w==' });
    expect(view).not.toHaveProperty('responseBody');
    expect(view).not.toHaveProperty('responseHeader');
  });
});
