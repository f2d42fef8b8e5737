/** Callbacks over the interface: who is told what, where it shows, and which ones are refused (contract M 9). */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Json, openWorld, type Reply, type World } from './support/world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const CALLBACK = 'https://ok.example/told';
const FAILURE_CALLBACK = 'https://ok.example/failed';
const LOOPBACK = 'http://127.0.0.1/';

/** The payloads that reached `url`, earliest first, once there are `count`. Bodies come decoded. */
async function told(url: string, count: number): Promise<Json[]> {
  const entries = await logsOf({ url, state: 'DELIVERED' }, count);
  return entries.map((entry) => {
    const payload = JSON.parse(decode(entry.body));
    return { ...payload, body: decode(payload.body), sourceBody: decode(payload.sourceBody) };
  });
}

/** Log entries by filter, earliest first, once there are `count`: the made-up endpoints answer within a few turns. */
async function logsOf(filter: Record<string, string>, count: number): Promise<Json[]> {
  const query = new URLSearchParams({ ...filter, order: 'earliestFirst' });
  for (let turn = 0; turn < 1_000; turn += 1) {
    const { json } = await world.ask({ method: 'GET', url: `/v2/logs?${query}` });
    if (json.logs.length >= count) return json.logs;
  }
  throw new Error(`there never were ${count} log entries with ${query}`);
}

function decode(base64: string): string {
  return Buffer.from(base64, 'base64').toString();
}

function send(method: 'POST' | 'PATCH', url: string, payload?: unknown, headers = {}): Promise<Reply> {
  return world.ask({ method, url, headers, ...(payload === undefined ? {} : { payload: JSON.stringify(payload) }) });
}

async function makeGroup(name: string, url: string): Promise<void> {
  const endpoints = [{ url, name: 'one' }];
  expect((await send('POST', `/v2/topics/${name}/endpoints`, { endpoints })).status).toBe(200);
}

describe('a callback', () => {
  it('tells of a delivery, as a message of its own', async () => {
    const headers = { 'upstash-callback': CALLBACK, 'upstash-method': 'PUT', 'content-type': 'text/x' };
    const messageId = await world.publish('https://ok.example/a', headers, 'my body');
    const [payload] = await told(CALLBACK, 1);
    expect(payload).toEqual({
      status: 200,
      header: { 'Content-Type': ['text/plain'] },
      body: 'fine',
      retried: 0,
      maxRetries: 3,
      sourceMessageId: messageId,
      url: 'https://ok.example/a',
      method: 'PUT',
      sourceHeader: { 'Content-Type': ['text/x'] },
      sourceBody: 'my body',
      notBefore: expect.any(Number),
      createdAt: expect.any(Number),
      callerIP: '127.0.0.1',
    });
    const entries = await logsOf({ url: CALLBACK }, 3);
    expect(entries.map(({ state }) => state)).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
    expect(entries[0].messageId).not.toBe(messageId);
    expect(entries[0]).toMatchObject({ maxRetries: 3, header: { 'Content-Type': ['application/json'] } });
    expect(await logsOf({ messageId }, 3)).toHaveLength(3);
  });

  it('has options that act on it alone', async () => {
    const url = 'https://slow.example/cb';
    const messageId = await world.publish('https://ok.example/', {
      'upstash-callback': url,
      'upstash-callback-method': 'PATCH',
      'upstash-callback-retries': '7',
      'upstash-callback-timeout': '9s',
      'upstash-callback-retry-delay': '70',
      'upstash-callback-label': 'told',
      'upstash-callback-forward-x-key': 'secret',
      'upstash-label': 'source',
    });
    const [{ messageId: callbackId }] = await logsOf({ url }, 1);
    const { json } = await world.ask({ method: 'GET', url: `/v2/messages/${callbackId}` });
    expect(json).toMatchObject({
      method: 'PATCH',
      maxRetries: 7,
      timeout: 9_000,
      retryDelayExpression: '70',
      labels: ['told'],
      header: { 'X-Key': ['secret'], 'Content-Type': ['application/json'] },
    });
    const [created] = await logsOf({ messageId }, 1);
    expect(created).toMatchObject({ method: 'POST', maxRetries: 3, labels: ['source'] });
    expect(created).not.toHaveProperty('header');
  });

  it('shows in the logs of its source, and in its DLQ entry, with the headers that it forwards', async () => {
    const dlqId = await world.bury('https://fail.example/', {
      'upstash-callback': CALLBACK,
      'upstash-failure-callback': FAILURE_CALLBACK,
      'upstash-callback-forward-a': '1',
      'upstash-failure-callback-forward-b': '2',
    });
    const { json } = await world.ask({ method: 'GET', url: `/v2/dlq/${dlqId}` });
    const urls = { callback: CALLBACK, failureCallback: FAILURE_CALLBACK };
    expect(json).toMatchObject({ ...urls, callbackHeader: { A: ['1'] }, failureCallbackHeader: { B: ['2'] } });
    const [entry] = await logsOf({ messageId: json.messageId }, 1);
    expect(entry).toMatchObject({ ...urls, callbackHeaders: { A: ['1'] }, failureCallbackHeaders: { B: ['2'] } });
  });

  it('that fails for good lies in the DLQ itself, while its source stays delivered', async () => {
    const callback = 'https://fail.example/cb';
    const headers = { 'upstash-callback': callback, 'upstash-callback-retries': '0' };
    const messageId = await world.publish('https://ok.example/', headers);
    await logsOf({ url: callback, state: 'FAILED' }, 1);
    const { json } = await world.ask({ method: 'GET', url: '/v2/dlq' });
    expect(json.messages.map(({ url, responseStatus }: Json) => [url, responseStatus])).toEqual([[callback, 500]]);
    expect(await logsOf({ messageId, state: 'DELIVERED' }, 1)).toHaveLength(1);
  });

  it('hides what its source hides, and carries it all the same (contract M 19.4)', async () => {
    const headers = { 'upstash-callback': CALLBACK, 'upstash-redact-fields': 'body,header[Authorization]' };
    const forwarded = { 'upstash-callback-forward-authorization': 'Bearer secret', 'upstash-callback-forward-x': '1' };
    await world.publish('https://ok.example/', { ...headers, ...forwarded }, 'my body');
    const [entry] = await logsOf({ url: CALLBACK, state: 'DELIVERED' }, 1);
    expect(decode(entry.body)).toMatch(/^REDACTED:[0-9a-f]{64}$/);
    expect(entry.header).toMatchObject({ Authorization: [expect.stringMatching(/^REDACTED:/)], X: ['1'] });
  });

  it('of a message that is cancelled before its first attempt is never sent', async () => {
    const headers = { 'upstash-callback': CALLBACK, 'upstash-failure-callback': CALLBACK, 'upstash-delay': '1h' };
    const messageId = await world.publish('https://ok.example/', headers);
    expect((await world.ask({ method: 'DELETE', url: `/v2/messages/${messageId}` })).json).toEqual({ cancelled: 1 });
    expect(await logsOf({ messageId, state: 'CANCELED' }, 1)).toHaveLength(1);
    expect(await logsOf({ url: CALLBACK }, 0)).toEqual([]);
  });
});

describe('callbacks of every kind of publish:', () => {
  it('a batch, each item its own', async () => {
    const item = (url: string) => ({ destination: 'https://ok.example/', headers: { 'upstash-callback': url } });
    const { json } = await send('POST', '/v2/batch', [item('https://ok.example/1'), item('https://ok.example/2')]);
    for (const [index, { messageId }] of json.entries()) {
      expect(await told(`https://ok.example/${index + 1}`, 1)).toMatchObject([{ sourceMessageId: messageId }]);
    }
  });

  it('a URL group, with the group and the endpoint in the payload', async () => {
    await makeGroup('group', 'https://ok.example/');
    await send('POST', '/v2/publish/group', undefined, { 'upstash-callback': CALLBACK });
    expect(await told(CALLBACK, 1)).toMatchObject([{ topicName: 'group', endpointName: 'one' }]);
  });

  it('a URL group with the callback among its default headers', async () => {
    await makeGroup('group', 'https://ok.example/');
    await send('PATCH', '/v2/topics/group', { headers: { 'Upstash-Callback': CALLBACK } });
    await send('POST', '/v2/publish/group');
    expect(await told(CALLBACK, 1)).toMatchObject([{ topicName: 'group' }]);
  });

  it('one that is configured in the query', async () => {
    await send('POST', `/v2/publish/https://ok.example/?upstash-callback=${encodeURIComponent(CALLBACK)}&a=b`);
    expect(await told(CALLBACK, 1)).toMatchObject([{ url: 'https://ok.example/?a=b' }]);
  });

  it('a DLQ retry, which keeps them', async () => {
    const dlqId = await world.bury('https://fail.example/', { 'upstash-failure-callback': FAILURE_CALLBACK });
    await told(FAILURE_CALLBACK, 1);
    const { json } = await send('POST', `/v2/dlq/retry/${dlqId}`);
    expect((await told(FAILURE_CALLBACK, 2))[1]).toMatchObject({ sourceMessageId: json.messageId });
  });

  it('a DLQ retry that replaces one of them and keeps the other', async () => {
    const callbacks = { 'upstash-callback': CALLBACK, 'upstash-failure-callback': FAILURE_CALLBACK };
    const dlqId = await world.bury('https://fail.example/', callbacks);
    const other = 'https://ok.example/other';
    const { json } = await send('POST', `/v2/dlq/retry/${dlqId}`, undefined, { 'upstash-callback': other });
    expect(await told(other, 1)).toMatchObject([{ sourceMessageId: json.messageId }]);
    expect(await told(FAILURE_CALLBACK, 2)).toHaveLength(2);
    expect(await told(CALLBACK, 1)).toHaveLength(1);
  });
});

describe('a callback whose address is refused is refused with its header named, by', () => {
  type Refusal = (header: string) => Promise<Reply>;
  const places: [string, Refusal][] = [
    ['a publish', (header) => send('POST', '/v2/publish/https://ok.example/', undefined, { [header]: LOOPBACK })],
    ['a publish by query', (header) => send('POST', `/v2/publish/https://ok.example/?${header}=${LOOPBACK}`)],
    [
      'a batch',
      (header) => send('POST', '/v2/batch', [{ destination: 'https://ok.example/', headers: { [header]: LOOPBACK } }]),
    ],
    ['a publish to a group', (header) => send('POST', '/v2/publish/group', undefined, { [header]: LOOPBACK })],
    [
      'a batch to a group',
      (header) => send('POST', '/v2/batch', [{ destination: 'group', headers: { [header]: LOOPBACK } }]),
    ],
    ['the defaults of a group', (header) => send('PATCH', '/v2/topics/group', { headers: { [header]: LOOPBACK } })],
    ['a DLQ retry', (header) => send('POST', '/v2/dlq/retry/1-1', undefined, { [header]: LOOPBACK })],
    ['a bulk DLQ retry', (header) => send('POST', '/v2/dlq/retry', {}, { [header]: LOOPBACK })],
  ];

  it.each(places)('%s', async (_name, ask) => {
    await makeGroup('group', 'https://ok.example/');
    const before = await world.countStored();
    for (const header of ['Upstash-Callback', 'Upstash-Failure-Callback', 'Waypost-Callback']) {
      const { status, json } = await ask(header.toLowerCase());
      expect(status).toBe(400);
      expect(json.error).toContain(`invalid ${header}: endpoint resolves to a loopback address: 127.0.0.1`);
    }
    expect(await world.countStored()).toBe(before);
  });

  it('a publish, also when it is the callback of a callback', async () => {
    const { status, json } = await send('POST', '/v2/publish/https://ok.example/', undefined, {
      'upstash-callback': CALLBACK,
      'upstash-callback-failure-callback': CALLBACK,
      'upstash-callback-failure-callback-callback': LOOPBACK,
    });
    expect([status, json.error]).toEqual([
      400,
      'invalid Upstash-Callback-Failure-Callback-Callback: endpoint resolves to a loopback address: 127.0.0.1',
    ]);
  });
});

describe('a callback is refused', () => {
  it.each([
    ['upstash-callback-delay', '1s', /^Upstash-Callback-Delay is not supported$/],
    ['upstash-failure-callback-not-before', '1', /^Upstash-Failure-Callback-Not-Before is not supported$/],
    ['upstash-callback-callback-callback-callback', CALLBACK, /callbacks of callbacks end after 3 levels$/],
    ['upstash-callback', 'ftp://ok.example/', /^invalid Upstash-Callback: endpoint has invalid scheme/],
    ['upstash-callback-retries', '-1', /^invalid Upstash-Callback-Retries/],
  ])('with %s: %s', async (name, value, error) => {
    const { status, json } = await send('POST', '/v2/publish/https://ok.example/', undefined, { [name]: value });
    expect([status, json.error]).toEqual([400, expect.stringMatching(error)]);
  });

  it('with more retries than the quota allows', async () => {
    const headers = { 'upstash-callback': CALLBACK, 'upstash-callback-retries': '1000' };
    const { status, json } = await send('POST', '/v2/publish/https://ok.example/', undefined, headers);
    expect([status, json.error]).toEqual([412, 'quota maxRetries exceeded, current limit: 999']);
  });
});
