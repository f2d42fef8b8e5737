/** Callbacks over HTTP: their content, their log entries and DLQ entries, and which are refused (contract M 9). */
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

/** The payloads that reached `url`, earliest first, once there are `count`. */
async function told(url: string, count: number): Promise<Json[]> {
  const entries = await logsOf({ url, state: 'DELIVERED' }, count);
  return entries.map(({ body }) => JSON.parse(Buffer.from(body, 'base64').toString()));
}

/** Log entries by filter, earliest first, once there are `count`: the simulated endpoints respond within a few turns. */
async function logsOf(filter: Record<string, string>, count: number): Promise<Json[]> {
  const query = new URLSearchParams({ ...filter, order: 'earliestFirst' });
  for (let turn = 0; turn < 1_000; turn += 1) {
    const { json } = await world.ask({ method: 'GET', url: `/v2/logs?${query}` });
    if (json.logs.length >= count) return json.logs;
  }
  throw new Error(`there never were ${count} log entries with ${query}`);
}

function send(method: 'POST' | 'PATCH', url: string, payload?: unknown, headers = {}): Promise<Reply> {
  return world.ask({ method, url, headers, ...(payload === undefined ? {} : { payload: JSON.stringify(payload) }) });
}

async function makeGroup(name: string, url: string): Promise<void> {
  const endpoints = [{ url, name: 'one' }];
  expect((await send('POST', `/v2/topics/${name}/endpoints`, { endpoints })).status).toBe(200);
}

describe('a callback', () => {
  it('of a message that is cancelled before its first attempt is never sent', async () => {
    const headers = { 'upstash-callback': CALLBACK, 'upstash-failure-callback': CALLBACK, 'upstash-delay': '1h' };
    const messageId = await world.publish('https://ok.example/', headers);
    expect((await world.ask({ method: 'DELETE', url: `/v2/messages/${messageId}` })).json).toEqual({ cancelled: 1 });
    expect(await logsOf({ messageId, state: 'CANCELED' }, 1)).toHaveLength(1);
    expect(await logsOf({ url: CALLBACK }, 0)).toEqual([]);
  });

  it('is kept by a DLQ retry, unless the request names another', async () => {
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
    ['upstash-callback-callback-callback-callback', CALLBACK, /callbacks can be nested at most 3 levels deep$/],
    ['upstash-callback', 'ftp://ok.example/', /^invalid Upstash-Callback: endpoint has invalid scheme/],
    ['upstash-callback-retries', '-1', /^invalid Upstash-Callback-Retries/],
  ])('with %s: %s', async (name, value, error) => {
    const { status, json } = await send('POST', '/v2/publish/https://ok.example/', undefined, { [name]: value });
    expect([status, json.error]).toEqual([400, expect.stringMatching(error)]);
  });
});
