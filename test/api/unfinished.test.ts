/** The list and the overview of unfinished messages, operations of ours under /v2/waypost. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Json, openWorld, type Reply, type World } from './support/world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const list = (query = ''): Promise<Reply> => world.ask({ method: 'GET', url: `/v2/waypost/messages${query}` });
const overview = async (): Promise<Json> => (await world.ask({ method: 'GET', url: '/v2/waypost/overview' })).json;
const idsOf = ({ json }: Reply): string[] => json.messages.map(({ messageId }: Json) => messageId);

const pause = (path: string): Promise<Reply> => world.ask({ method: 'POST', url: `/v2/${path}/pause` });

/** One of each kind: delayed, in flight, in a paused queue and with a paused key. */
async function publishAll(): Promise<Record<'delayed' | 'active' | 'queued' | 'keyed', string>> {
  const delayed = await world.publish('https://ok.example/d', { 'upstash-delay': '1h', 'upstash-label': 'late' });
  const active = await world.publish('https://slow.example/a');
  const queue = { queueName: 'q', parallelism: 1, paused: true };
  await world.ask({ method: 'POST', url: '/v2/queues', payload: JSON.stringify(queue) });
  const enqueued = await world.ask({ method: 'POST', url: '/v2/enqueue/q/https://ok.example/q' });
  await pause('flowControl/k');
  const keyed = await world.publish('https://ok.example/k', {
    ...{ 'upstash-flow-control-key': 'k', 'upstash-flow-control-value': 'parallelism=1' },
  });
  return { delayed, active, queued: enqueued.json.messageId, keyed };
}

describe('the list of unfinished messages', () => {
  it('shows each, newest first, with its state, why it waits and since when', async () => {
    const { delayed, active, queued, keyed } = await publishAll();
    const { status, json } = await list();
    expect(status).toBe(200);
    expect(json.messages).toMatchObject([
      { messageId: keyed, state: 'held', reason: 'key_paused', flowControlKey: 'k' },
      { messageId: queued, state: 'held', reason: 'queue_paused', queueName: 'q' },
      { messageId: active, state: 'active', reason: 'attempting', since: expect.any(Number) },
      { messageId: delayed, state: 'waiting', reason: 'delayed', label: 'late', retried: 0 },
    ]);
    expect(json.messages[3].due).toBe(json.messages[3].notBefore);
    expect(json.messages[1].explanation).toBe('Its queue q is paused.');
    expect(json.cursor).toBeUndefined();
  });

  it('shows the queue of a message that something else holds, or nothing does', async () => {
    const active = (await world.ask({ method: 'POST', url: '/v2/enqueue/free/https://slow.example/' })).json.messageId;
    const { json } = await list('?queueName=free');
    expect(json.messages).toMatchObject([{ messageId: active, reason: 'attempting', queueName: 'free' }]);
  });

  it('narrows by state, by the filters of the interface, and by ids', async () => {
    const { delayed, active, queued, keyed } = await publishAll();
    expect(idsOf(await list('?state=held'))).toEqual([keyed, queued]);
    expect(idsOf(await list('?state=active'))).toEqual([active]);
    expect(idsOf(await list('?state=waiting,active'))).toEqual([active, delayed]);
    expect(idsOf(await list('?label=late'))).toEqual([delayed]);
    expect(idsOf(await list('?queueName=q&state=waiting'))).toEqual([]);
    expect(idsOf(await list('?flowControlKey=k'))).toEqual([keyed]);
    expect(idsOf(await list('?host=slow.example'))).toEqual([active]);
    expect(idsOf(await list('?toDate=5'))).toEqual([]);
    expect(idsOf(await list(`?messageIds=${delayed},${queued},msg_unknown`))).toEqual([queued, delayed]);
    expect((await list('?state=DELIVERED')).json.error).toContain('one of waiting, active, held is needed');
  });

  it('says how long a body is instead of the body, and hides what is redacted', async () => {
    const headers = { 'upstash-delay': '1h', 'upstash-redact-fields': 'body,header[X-Secret]' };
    await world.publish('https://ok.example/', { ...headers, 'upstash-forward-x-secret': 'hush' }, 'a secret');
    const { text, json } = await list();
    expect(json.messages[0]).toMatchObject({
      bodyBytes: 8,
      header: { 'X-Secret': [expect.stringMatching(/^REDACTED/)] },
    });
    expect(json.messages[0]).not.toHaveProperty('body');
    expect(text).not.toMatch(/hush|a secret/);
  });
});

describe('the overview', () => {
  it('counts what is unfinished, and says what holds it back', async () => {
    await publishAll();
    const { heldBack, ...rest } = await overview();
    expect(rest).toMatchObject({
      unfinished: { count: 4, isAtLeast: false },
      waiting: { count: 1, isAtLeast: false },
      active: 1,
      held: { count: 2, isAtLeast: false },
      oldestDue: expect.any(Number),
      dlq: { messages: { count: 0 }, workflowRuns: { count: 0 } },
      failures: { lookedAt: 0, causes: [] },
      retention: { logs: 86_400_000, dlq: 86_400_000 },
    });
    const one = { waiting: { count: 1, isAtLeast: false }, due: expect.any(Number) };
    expect(heldBack).toEqual({
      origins: [],
      queues: [{ queueName: 'q', paused: true, parallelism: 1, reason: 'queue_paused', ...one }],
      flowControlKeys: [{ flowControlKey: 'k', reason: 'key_paused', ...one }],
      isPartial: false,
    });
  });

  it('names the endpoints in whose lines messages wait', async () => {
    for (let count = 0; count < 60; count += 1) await world.publish('https://slow.example/a');
    const { active, heldBack } = await overview();
    const [line] = heldBack.origins;
    expect(line).toMatchObject({ origin: 'https://slow.example', isHeldBack: false });
    expect(line.reason).toMatch(/^endpoint_/);
    expect(active + line.waiting.count).toBe(60);
  });

  it('counts the latest failures by their cause', async () => {
    for (let count = 0; count < 3; count += 1) await world.bury('https://fail.example/');
    const { dlq, failures } = await overview();
    expect(dlq.messages).toEqual({ count: 3, isAtLeast: false });
    expect(failures).toEqual({
      lookedAt: 3,
      causes: [{ responseStatus: 500, count: 3, workflowRuns: 0, last: expect.any(Number) }],
    });
  });

  it('tells how large the database is where the tokens of all its projects are published', async () => {
    expect(await overview()).not.toHaveProperty('storage');
    const published = await openWorld({ tokens: undefined });
    const { json } = await published.ask({ method: 'GET', url: '/v2/waypost/overview' });
    expect(json.storage).toEqual({ bytes: expect.any(Number), unusedBytes: expect.any(Number) });
    expect(json.storage.bytes).toBeGreaterThan(json.storage.unusedBytes);
    await published.close();
  });
});
