import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { OTHER_TOKEN, openWorld, type Reply, type World } from './support/world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const LATER = { 'upstash-delay': '1h' };

function cancel(query: string, body?: unknown): Promise<Reply> {
  const payload = body === undefined ? '' : JSON.stringify(body);
  return world.ask({ method: 'DELETE', url: `/v2/messages${query}`, payload });
}

describe('attempting one message at once', () => {
  const retry = (id: string, headers = {}) => world.ask({ method: 'POST', url: `/v2/messages/${id}/retry`, headers });

  it('sends a delayed message now, and only once', async () => {
    const id = await world.publish('https://slow.example/', LATER);
    expect(await retry(id)).toMatchObject({ status: 200, text: '' });
    const refused = await eventually('the attempt', async () => {
      const again = await retry(id);
      return again.status !== 200 && again;
    });
    expect([refused.status, refused.json.error]).toEqual([404, `message ${id} is being attempted: it does not wait`]);
  });
});

describe('cancelling many messages', () => {
  it.each([
    ['no filter', '', undefined],
    ['a trailing slash', '/', undefined],
    ['an empty object', '', {}],
    ['no message ids', '', { messageIds: [] }],
    ["Go's spelling of no message ids", '', { messageIds: null }],
  ])('means everything with %s (contract M 21.5)', async (_name, query, body) => {
    for (let i = 0; i < 3; i += 1) await world.publish('https://slow.example/', LATER);
    expect((await cancel(query, body)).json).toEqual({ cancelled: 3 });
  });

  it.each([
    ['?lable=a', undefined, 'unknown query parameter lable'],
    ['', { lable: 'a' }, 'unknown query parameter lable'],
    ['?state=CREATED', undefined, 'unknown query parameter state'],
    ['?messageId=x', undefined, 'unknown query parameter messageId'],
    ['?cursor=1-1', undefined, 'unknown query parameter cursor'],
    ['?fromDate=yesterday', undefined, 'invalid query parameter fromDate: a whole number is needed'],
    ['?label=', undefined, 'invalid query parameter label: it has no value, and leaving it out would widen the action'],
    ['?messageIds=', undefined, 'invalid query parameter messageIds: it has no value'],
    ['?label=%zz', undefined, 'invalid query parameter label: malformed escape'],
    ['', { messageIds: [''] }, 'invalid request body: messageIds must not hold an empty text'],
    ['', { label: ['a', ''] }, 'invalid request body: label must not hold an empty text'],
    ['', { label: null }, 'invalid query parameter label: it has no value, and leaving it out would widen the action'],
    ['', { label: { a: 1 } }, 'invalid request body: label must be a text, a number, or an array of them'],
    [
      `?label=${Array.from({ length: 101 }, (_, i) => i)}`,
      undefined,
      'invalid query parameter label: at most 100 values are possible, got 101',
    ],
    ['', ['msg_1'], 'invalid request body: an object of filters is needed'],
    [
      '',
      { messageIds: Array.from({ length: 1001 }, (_, i) => `msg_${i}`) },
      'invalid query parameter messageIds: at most 1000 values are possible, got 1001',
    ],
  ])('refuses %s %j and cancels nothing', async (query, body, error) => {
    const id = await world.publish('https://slow.example/', LATER);
    const reply = await cancel(query, body);
    expect([reply.status, reply.json.error]).toEqual([400, error]);
    expect((await world.ask({ method: 'GET', url: `/v2/messages/${id}` })).status).toBe(200);
  });
});

describe('explaining why a message waits (P14)', () => {
  const explain = (id: string): Promise<Reply> => world.ask({ method: 'GET', url: `/v2/Messages/${id}/Explain/` });

  it('says since when a message is being attempted, and that its cancel waits for the end', async () => {
    const id = await world.publish('https://slow.example/');
    expect((await explain(id)).json).toMatchObject({ reason: 'attempting', since: expect.any(Number) });
    await cancel(`/${id}`);
    expect((await explain(id)).json).toMatchObject({ reason: 'cancelling' });
  });

  it('says that a message was delivered, and when', async () => {
    const id = await world.publish('https://ok.example/');
    const explained = await eventually('the delivery', async () => {
      const { json } = await explain(id);
      return json.reason !== 'attempting' && json;
    });
    expect(explained).toMatchObject({ reason: 'delivered', retried: 0, at: expect.any(Number) });
    expect(explained.explanation).toMatch(/^Delivered at \d{4}-.*Z by attempt 1\.$/);
  });

  it('says that a message was cancelled', async () => {
    const id = await world.publish('https://slow.example/', LATER);
    await cancel(`/${id}`);
    expect((await explain(id)).json).toMatchObject({ reason: 'cancelled', at: expect.any(Number) });
  });

  it('says of a dead message why, and where it is until it is taken from there', async () => {
    const dlqId = await world.bury('https://fail.example/');
    const dead = await world.ask({ method: 'GET', url: `/v2/dlq/${dlqId}` });
    const { json } = await explain(dead.json.messageId);
    expect(json).toMatchObject({ reason: 'dead', retried: 0, dlqId });
    expect(json.explanation).toMatch(
      /after 1 attempt: the endpoint responded with status 500\. It is in the DLQ as \d+-\d+\.$/,
    );
    await world.ask({ method: 'DELETE', url: `/v2/dlq/${dlqId}` });
    const later = (await explain(dead.json.messageId)).json;
    expect(later.dlqId).toBeUndefined();
    expect(later.explanation).toContain('It is not in the DLQ.');
  });

  it('returns 404 for a message that never existed, and for one of another project', async () => {
    expect((await explain('msg_nobody')).status).toBe(404);
    const id = await world.publish('https://slow.example/', LATER);
    await cancel(`/${id}`);
    const authorization = `Bearer ${OTHER_TOKEN}`;
    const reply = await world.ask({ method: 'GET', url: `/v2/messages/${id}/explain`, headers: { authorization } });
    expect(reply.status).toBe(404);
  });
});
