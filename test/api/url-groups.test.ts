import { Value } from '@sinclair/typebox/value';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { URL_GROUP } from '../../src/api/publishing/url-groups.ts';
import { type Json, openWorld, type Reply, type World } from './support/world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const A = { url: 'https://slow.example/a', name: 'the first' };
const B = { url: 'https://slow.example/b?c=d' };

function send(method: 'POST' | 'DELETE' | 'PATCH', path: string, body?: unknown): Promise<Reply> {
  const payload = typeof body === 'string' ? body : JSON.stringify(body);
  return world.ask({ method, url: `/v2/topics/${path}`, ...(payload === undefined ? {} : { payload }) });
}

const add = (name: string, endpoints: unknown) => send('POST', `${name}/endpoints`, { endpoints });
const setHeaders = (name: string, headers: unknown) => send('PATCH', name, { headers });
const get = (name: string) => world.ask({ method: 'GET', url: `/v2/topics/${name}` });
const list = () => world.ask({ method: 'GET', url: '/v2/topics' });
const publish = (name: string, headers: Record<string, string> = {}, payload = '') =>
  world.ask({ method: 'POST', url: `/v2/publish/${name}`, headers, payload });
const message = async (id: string): Promise<Json> =>
  (await world.ask({ method: 'GET', url: `/v2/messages/${id}` })).json;

describe('endpoints of a URL group', () => {
  it('are added, in order, and read back (contract M 22.18, 22.22)', async () => {
    expect(await add('g', [A, B])).toMatchObject({ status: 200, text: '' });
    const { status, json } = await get('g');
    expect([status, json]).toEqual([
      200,
      { name: 'g', createdAt: expect.any(Number), updatedAt: json.createdAt, endpoints: [A, B] },
    ]);
    expect(Value.Check(URL_GROUP.schema, json)).toBe(true);
  });

  it('are no more than the quotas allow, which refuse growth only (contract M 20.1)', async () => {
    const many = Array.from({ length: 5 }, (_, n) => ({ url: `https://slow.example/${n}` }));
    const tooMany = await add('g', many);
    expect([tooMany.status, tooMany.json.error]).toEqual([412, 'quota maxEndpoints exceeded, current limit: 4']);
    expect((await get('g')).status).toBe(404);
    for (const name of ['a', 'b', 'c', 'd', 'e']) expect((await add(name, many.slice(0, 4))).status).toBe(200);
    const oneMore = await add('f', [A]);
    expect([oneMore.status, oneMore.json.error]).toEqual([412, 'quota maxTopics exceeded, current limit: 5']);
    expect((await add('a', [{ ...many[0], name: 'named' }])).status).toBe(200);
  });

  it.each<[string, string, unknown, RegExp]>([
    ['a wrong group name', 'a%20b', { endpoints: [A] }, /^invalid topic name a b: only letters/],
    ['no body', 'g', undefined, /^invalid request body: an object is needed/],
    ['no JSON', 'g', '{', /^invalid request body: not valid JSON/],
    ['no endpoints', 'g', {}, /^invalid request body: a non-empty array endpoints is needed/],
    ['an empty array', 'g', { endpoints: [] }, /^invalid request body: a non-empty array endpoints is needed/],
    ['no object', 'g', { endpoints: [A, 'x'] }, /endpoints\[1\] must be an object$/],
    ['a number as URL', 'g', { endpoints: [{ url: 1 }] }, /endpoints\[0\]\.url must be a string$/],
    ['a name without URL', 'g', { endpoints: [{ name: 'x' }] }, /endpoints\[0\]\.url is missing$/],
    ['neither', 'g', { endpoints: [{ url: null, name: '' }] }, /endpoints\[0\] needs a url or a name$/],
    ['a long name', 'g', { endpoints: [{ ...B, name: 'x'.repeat(256) }] }, /endpoints\[0\]\.name: at most 255/],
    ['half a character', 'g', { endpoints: [{ ...B, name: '\ud800' }] }, /endpoints\[0\]\.name: not a valid text$/],
    [
      'a group as endpoint',
      'g',
      { endpoints: [A, { url: 'other' }] },
      /^invalid destination url: endpoint has invalid/,
    ],
    [
      'a loopback address',
      'g',
      { endpoints: [A, { url: 'http://127.0.0.1/' }] },
      /^invalid destination url: endpoint resolves to a loopback address: 127\.0\.0\.1 \(endpoint "http:/,
    ],
    ['a thousand and one', 'g', { endpoints: Array(1001).fill(A) }, /at most 1000 endpoints, got 1001$/],
  ])('are refused with nothing done: %s', async (_name, group, body, error) => {
    const reply = await send('POST', `${group}/endpoints`, body);
    expect([reply.status, reply.json.error]).toEqual([400, expect.stringMatching(error)]);
    expect((await list()).json).toEqual([]);
  });
});

describe('URL groups', () => {
  it('are deleted, also when they do not exist, and their messages go on (contract M 22.23)', async () => {
    await add('g', [A]);
    const { json } = await publish('g');
    for (let time = 0; time < 2; time += 1) {
      expect(await send('DELETE', 'g')).toMatchObject({ status: 200, text: '' });
    }
    expect((await get('g')).status).toBe(404);
    expect((await message(json[0].messageId)).topicName).toBe('g');
  });

  it('have case-sensitive names under words in any case', async () => {
    await add('Group', [A]);
    expect((await world.ask({ method: 'GET', url: '/v2/Topics/Group' })).status).toBe(200);
    expect((await get('group')).status).toBe(404);
    await world.ask({ method: 'POST', url: '/v2/topics/endpoints/Endpoints', payload: { endpoints: [A] } });
    expect((await get('endpoints')).json.endpoints).toEqual([A]);
  });
});

describe('a publish to a URL group', () => {
  it('leaves existing messages as they are when the group changes', async () => {
    await add('g', [A]);
    const { json } = await publish('g');
    await add('g', [{ ...A, url: 'https://slow.example/moved' }]);
    expect((await message(json[0].messageId)).url).toBe(A.url);
  });

  it.each([
    ['an id', { 'upstash-deduplication-id': 'once' }],
    ['the content', { 'upstash-content-based-deduplication': 'true' }],
  ])(
    'deduplicates by %s for each endpoint, and returns 202 when all are repeated (contract M 11.6)',
    async (_by, headers) => {
      await add('g', [A]);
      const first = await publish('g', headers, 'x');
      await add('g', [B]);
      const second = await publish('g', headers, 'x');
      const third = await publish('g', headers, 'x');
      expect([first.status, second.status, third.status]).toEqual([200, 200, 202]);
      expect(second.json).toEqual([
        { ...first.json[0], deduplicated: true },
        { messageId: expect.any(String), url: B.url },
      ]);
      expect(third.json).toEqual(second.json.map((one: Json) => ({ ...one, deduplicated: true })));
      const alone = await publish(A.url, headers, 'x');
      expect([alone.status, alone.json]).toEqual([200, { messageId: expect.any(String), url: A.url }]);
    },
  );

  it('makes nothing when one endpoint is refused, and names it (contract M 22.1)', async () => {
    let isRefused = false;
    await world.close();
    world = await openWorld({
      checkDestination:
        () =>
        ({ pathname }) =>
          isRefused && pathname === '/a' ? 'endpoint is elsewhere' : undefined,
    });
    await add('g', [B, A]);
    isRefused = true;
    const reply = await publish('g');
    expect([reply.status, reply.json.error]).toEqual([
      400,
      'invalid destination url: endpoint is elsewhere (endpoint "the first")',
    ]);
    const batch = await world.ask({ method: 'POST', url: '/v2/batch', payload: [{ destination: 'g' }] });
    expect([batch.status, batch.json.error]).toEqual([400, expect.stringMatching(/"the first"\) \(item 0\)$/)]);
    expect(await world.countStored()).toBe(0);
  });

  it('reports an unknown group only if the rest of the request is valid (contract M 25)', async () => {
    const unknown = await publish('nope');
    expect([unknown.status, unknown.json.error]).toEqual([404, 'topic nope not found']);
    expect((await publish('nope', { 'upstash-retries': 'x' })).status).toBe(400);
    expect((await publish('nope', { 'upstash-retries': '9999' })).status).toBe(412);
  });
});

describe('default headers of a URL group', () => {
  it('show what they redact as its messages would, to every token (contract M 2.2, 19)', async () => {
    await add('g', [A]);
    await setHeaders('g', {
      'Upstash-Redact-Fields': 'header[authorization]',
      'Upstash-Forward-Authorization': 'Bearer secret',
      'Upstash-Forward-X': 'open',
      'Upstash-Callback': 'https://slow.example/told',
      'Upstash-Callback-Forward-Authorization': ['Bearer secret'],
    });
    const hidden = [expect.stringMatching(/^REDACTED:[0-9a-f]{64}$/)];
    for (const { headers } of [(await get('g')).json, (await list()).json[0]]) {
      expect(headers).toEqual({
        'Upstash-Redact-Fields': ['header[authorization]'],
        'Upstash-Forward-Authorization': hidden,
        'Upstash-Forward-X': ['open'],
        'Upstash-Callback': ['https://slow.example/told'],
        'Upstash-Callback-Forward-Authorization': hidden,
      });
    }
    await setHeaders('g', {
      'Upstash-Redact-Fields': 'headers',
      'Content-Type': 'text/x-secret',
      'Upstash-Retries': '1',
    });
    expect((await get('g')).json.headers).toMatchObject({ 'Content-Type': hidden, 'Upstash-Retries': ['1'] });
    const [{ messageId }] = (await publish('g')).json;
    expect((await message(messageId)).header).toEqual({ 'Content-Type': hidden });
  });

  it('apply to every publish and lose against the request', async () => {
    await add('g', [A]);
    const headers = {
      'upstash-retries': '7',
      'Upstash-Forward-X': ['1', '2'],
      'upstash-delay': '1h',
      'upstash-label': '',
    };
    expect(await setHeaders('g', headers)).toMatchObject({ status: 200, text: '' });
    expect((await get('g')).json.headers).toEqual({
      'Upstash-Retries': ['7'],
      'Upstash-Forward-X': ['1', '2'],
      'Upstash-Delay': ['1h'],
    });
    const plain = await publish('g');
    const own = await publish('g?upstash-retries=5', { 'upstash-forward-x': 'mine' });
    expect(await message(plain.json[0].messageId)).toMatchObject({ maxRetries: 7, header: { X: ['1', '2'] } });
    expect(await message(own.json[0].messageId)).toMatchObject({ maxRetries: 5, header: { X: ['mine'] } });
    const payload = [{ destination: 'g' }, { destination: 'g', headers: { 'Upstash-Retries': '4' } }];
    const { json } = await world.ask({ method: 'POST', url: '/v2/batch', payload });
    expect((await message(json[0][0].messageId)).maxRetries).toBe(7);
    expect((await message(json[1][0].messageId)).maxRetries).toBe(4);
    expect((await publish(A.url)).json).toMatchObject({ url: A.url });
  });

  it('are replaced as a whole and cleared by an empty object', async () => {
    await add('g', [A]);
    await setHeaders('g', { 'Upstash-Retries': '7' });
    await setHeaders('g', { 'Upstash-Timeout': '5s' });
    expect((await get('g')).json.headers).toEqual({ 'Upstash-Timeout': ['5s'] });
    await setHeaders('g', {});
    expect((await get('g')).json).not.toHaveProperty('headers');
  });

  it.each<[string, unknown, number, RegExp]>([
    ['nothing', undefined, 400, /headers: an object of headers is needed$/],
    ['no object', [], 400, /headers: must be an object$/],
    ['a number', { 'Upstash-Retries': 1 }, 400, /headers: Upstash-Retries must be a string/],
    ['a wrong value', { 'Upstash-Retries': 'x' }, 400, /^invalid Upstash-Retries/],
    ['too much', { 'Upstash-Retries': '1000' }, 412, /^quota maxRetries exceeded/],
    ['what is no config header', { 'X-Mine': '1' }, 400, /^invalid X-Mine: only Content-Type and headers/],
    ['what would make schedules', { 'Upstash-Cron': '@daily' }, 400, /^Upstash-Cron is not supported as a default/],
    ['a refused callback', { 'Upstash-Callback': 'http://127.0.0.1/' }, 400, /^invalid Upstash-Callback: .*loopback/],
    ['a header that HTTP cannot carry', { 'Upstash-Forward-X': 'a\nb' }, 400, /^invalid Upstash-Forward-X/],
    ['long ones', { 'Upstash-Forward-X': 'x'.repeat(65_536) }, 400, /\(header_bytes_max\)$/],
  ])('are refused with nothing changed: %s', async (_name, headers, status, error) => {
    await add('g', [A]);
    const reply = await setHeaders('g', headers);
    expect([reply.status, reply.json.error]).toEqual([status, expect.stringMatching(error)]);
    expect((await get('g')).json).not.toHaveProperty('headers');
  });

  it('need a group', async () => {
    const reply = await setHeaders('g', { 'Upstash-Retries': '1' });
    expect([reply.status, reply.json.error]).toEqual([404, 'topic g not found']);
  });
});

describe('a batch with URL groups', () => {
  it('is refused when its groups would multiply it beyond measure', async () => {
    await add('g', [A, B]);
    const item = { destination: 'g', body: 'x'.repeat(90_000) };
    const reply = await world.ask({ method: 'POST', url: '/v2/batch', payload: Array(6).fill(item) });
    expect([reply.status, reply.json.error]).toEqual([
      400,
      'the URL groups of one request may make at most 1000000 bytes of bodies (batch_bytes_max) (item 5)',
    ]);
    expect(await world.countStored()).toBe(0);
  });
});
