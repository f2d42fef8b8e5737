import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Json, LIMITS, openWorld, type Reply, TOKEN, type World } from './support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.close());

/** Publishes with a delay, so that the message can be looked at. */
async function publishLater(
  path: string,
  headers: Record<string, string> = {},
  payload: string | Buffer = '',
): Promise<Json> {
  const reply = await post(path, { 'upstash-delay': '1h', ...headers }, payload);
  expect(reply.status, reply.text).toBe(200);
  return message(reply.json.messageId);
}

async function message(id: string): Promise<Json> {
  const reply = await world.ask({ method: 'GET', url: `/v2/messages/${id}` });
  expect(reply.status, reply.text).toBe(200);
  return reply.json;
}

function post(path: string, headers: Record<string, string> = {}, payload: string | Buffer = ''): Promise<Reply> {
  return world.ask({ method: 'POST', url: `/v2/publish/${path}`, headers, payload });
}

async function expectRefused(reply: Promise<Reply>, status: number, error: string | RegExp): Promise<void> {
  const before = await world.countStored();
  const { status: got, json } = await reply;
  expect([got, json.error]).toEqual([status, expect.stringMatching(error)]);
  expect(await world.countStored()).toBe(before);
}

describe('a publish', () => {
  it('takes options from both dialects, header before query (contract M 4.1, 0.3)', async () => {
    const path = 'https://slow.example/q?x=1&upstash-retries=7&upstash-method=put&y=%20&qstash_token={token}';
    const shown = await publishLater(path.replace('{token}', encodeURIComponent(TOKEN)), { 'waypost-retries': '2' });
    expect([shown.url, shown.maxRetries, shown.method]).toEqual(['https://slow.example/q?x=1&y=%20', 2, 'PUT']);
  });

  it('shows labels, timeout and retry expression', async () => {
    const headers = { 'upstash-label': 'a, b', 'upstash-timeout': '5s', 'upstash-retry-delay': '1000 * (1 + retried)' };
    expect(await publishLater('https://slow.example/', headers)).toMatchObject({
      label: 'a',
      labels: ['a', 'b'],
      timeout: 5000,
      retryDelayExpression: '1000 * (1 + retried)',
    });
  });

  it('forwards all headers on request, but not the token', async () => {
    const { header } = await publishLater('https://slow.example/', {
      'upstash-header-forward': 'True',
      'x-plain': 'p',
      'x-forwarded-host': 'proxy',
    });
    expect(header).toMatchObject({ 'X-Plain': ['p'] });
    expect(Object.keys(header)).not.toContain('Authorization');
    expect(Object.keys(header)).not.toContain('X-Forwarded-Host');
  });
});

describe('a publish is refused, and stores nothing, with', () => {
  it.each<[string, number, string | RegExp]>([
    ['ftp://example.com', 400, /^invalid destination url: /],
    ['https://', 400, /^invalid destination url: /],
    ['https://example.com:99999/', 400, /^invalid destination url: /],
    ['http://127.0.0.1:1/', 400, 'invalid destination url: endpoint resolves to a loopback address: 127.0.0.1'],
    ['https://slow.example/?upstash-retries=%zz', 400, /upstash-retries/],
  ])('the destination %j', async (path, status, error) => {
    await expectRefused(post(path), status, error);
  });

  it.each<[string, string, number, RegExp]>([
    ['upstash-delay', '400d', 412, /^quota maxDelay exceeded, current limit: 31536000$/],
    ['upstash-forward-x', 'a\u007fb', 400, /^invalid Upstash-Forward-X: /],
    ['upstash-callback', 'nowhere', 400, /^invalid Upstash-Callback: endpoint has invalid scheme/],
    ['upstash-failure-callback-delay', '1s', 400, /^Upstash-Failure-Callback-Delay is not supported$/],
    ['upstash-cron', '* * * *', 400, /^Invalid cron expression expected exactly 5 fields, found 4/],
    ['upstash-workflow-init', 'maybe', 400, /^invalid Upstash-Workflow-Init: must be true or false/],
    ['upstash-workflow-init', 'false', 400, /a Workflow-RunId header must be provided$/],
  ])('%s: %s', async (name, value, status, error) => {
    await expectRefused(post('https://slow.example/', { [name]: value }), status, error);
  });

  it('several things wrong, of which the destination is told before the headers (contract M 25)', async () => {
    const headers = { 'upstash-retries': 'many' };
    await expectRefused(post('http://127.0.0.1:1/', headers), 400, /loopback/);
    await expectRefused(post('no-such-group', headers), 400, /Upstash-Retries/);
    const tooLarge = Buffer.alloc(LIMITS.messageBytesMax + 1);
    await expectRefused(post('https://slow.example/', headers, tooLarge), 400, /Upstash-Retries/);
  });

  it.each<[string, Record<string, string>, RegExp]>([
    ['a key without limits', { key: 'k' }, /^invalid Upstash-Flow-Control-Key: needs Upstash-Flow-Control-Value/],
    [
      'limits without a key',
      { value: 'rate=1' },
      /^invalid Upstash-Flow-Control-Value: needs Upstash-Flow-Control-Key/,
    ],
    ['a wrong key', { key: 'a b', value: 'rate=1' }, /^invalid flow control key a b: .*Upstash-Flow-Control-Key/],
    ['a rate of 0', { key: 'k', value: 'rate=0' }, /^invalid Upstash-Flow-Control-Value: rate must be a whole number/],
    ['a long period', { key: 'k', value: 'rate=1,period=8d' }, /^invalid Upstash-Flow-Control-Value: period must be/],
  ])('flow control that is wrong: %s', async (_name, given, error) => {
    const headers = Object.fromEntries(
      Object.entries(given).map(([name, value]) => [`upstash-flow-control-${name}`, value]),
    );
    await expectRefused(post('https://slow.example/', headers), 400, error);
  });
});

it('answers 404 with the id for a message that nobody knows', async () => {
  const reply = await world.ask({ method: 'GET', url: '/v2/messages/msg_x%2Fy' });
  expect([reply.status, reply.json.error]).toEqual([404, 'message msg_x/y not found']);
});
