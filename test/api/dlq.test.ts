import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Json, openWorld, type Reply, type World } from './support/world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const dlqIdsOf = ({ json }: Reply): string[] => json.messages.map(({ dlqId }: Json) => dlqId);
const list = (query = ''): Promise<Reply> => world.ask({ method: 'GET', url: `/v2/dlq${query}` });
const retry = (query = '', payload = ''): Promise<Reply> =>
  world.ask({ method: 'POST', url: `/v2/dlq/retry${query}`, payload });
const remove = (query = '', payload = ''): Promise<Reply> =>
  world.ask({ method: 'DELETE', url: `/v2/dlq${query}`, payload });

describe('deleting dead messages', () => {
  it.each([{ dlqIds: [] }, { dlqIds: null }])('deletes and retries nothing for %j (contract M 21.5)', async (body) => {
    const dlqId = await world.bury('https://fail.example/0');
    expect((await remove('', JSON.stringify(body))).json).toEqual({ deleted: 0 });
    expect((await retry('', JSON.stringify(body))).json).toEqual({ cursor: '', responses: [] });
    expect(dlqIdsOf(await list())).toEqual([dlqId]);
  });
});

describe('retrying dead messages', () => {
  async function retryWith(dlqId: string, headers: Record<string, string>): Promise<Json> {
    return (await world.ask({ method: 'POST', url: `/v2/dlq/retry/${dlqId}`, headers })).json;
  }

  it('lets config headers of the request replace stored values (contract M 17.4)', async () => {
    const stored = {
      'upstash-timeout': '7s',
      'upstash-label': 'a',
      'upstash-forward-x': '1',
      'upstash-forward-y': '1',
    };
    const dlqId = await world.bury('https://fail.example/x', { ...stored, 'content-type': 'text/x' });
    const json = await retryWith(dlqId, {
      'upstash-retries': '5',
      'upstash-method': 'PUT',
      'upstash-label': 'b,c',
      'upstash-forward-y': '2',
      'upstash-delay': '1h',
      'content-type': 'application/x-www-form-urlencoded',
    });
    const message = await world.ask({ method: 'GET', url: `/v2/messages/${json.messageId}` });
    expect(message.json).toMatchObject({ maxRetries: 5, timeout: 7000, method: 'PUT', labels: ['b', 'c'] });
    expect(message.json.header).toEqual({ X: ['1'], Y: ['2'], 'Content-Type': ['text/x'] });
    expect(message.json.notBefore - message.json.createdAt).toBe(3_600_000);
  });

  it('keeps what the request does not name, its method and redaction among it', async () => {
    const stored = { 'upstash-method': 'PUT', 'upstash-retry-delay': '7', 'upstash-forward-k': 'secret' };
    const dlqId = await world.bury('https://fail.example/x', { ...stored, 'upstash-redact-fields': 'header[K]' });
    const json = await retryWith(dlqId, { 'upstash-redact-fields': 'header[X]', 'upstash-forward-x': '1' });
    const logs = await world.ask({ method: 'GET', url: `/v2/logs?messageId=${json.messageId}` });
    expect(logs.json.logs[0]).toMatchObject({ maxRetries: 0, method: 'PUT', retryDelayExpression: '7' });
    const hidden = [expect.stringMatching(/^REDACTED:/)];
    expect(logs.json.logs[0].header).toEqual({ K: hidden, X: hidden });
  });

  it.each([
    ['upstash-retries', 'x'],
    ['upstash-deduplication-id', 'x'],
    ['upstash-cron', '@daily'],
    ['upstash-callback', 'http://127.0.0.1/'],
    ['upstash-failure-callback-retries', 'x'],
  ])('refuses %s: %s, and retries nothing', async (name, value) => {
    const dlqId = await world.bury('https://fail.example/x');
    for (const path of ['', `/${dlqId}`]) {
      const url = `/v2/dlq/retry${path}`;
      const { status, json } = await world.ask({ method: 'POST', url, headers: { [name]: value } });
      expect([status, json.error.toLowerCase()]).toEqual([400, expect.stringContaining(name)]);
    }
    expect(dlqIdsOf(await list())).toEqual([dlqId]);
  });

  it('retries none of several ids when one is gone (contract M 22.29)', async () => {
    const dlqId = await world.bury('https://fail.example/x');
    expect((await retry(`?dlqIds=${dlqId},1-1`)).status).toBe(404);
    expect(dlqIdsOf(await list())).toEqual([dlqId]);
  });
});
