/** Queues over the whole interface, on simulated time (contract M 14, 22.2, 22.7 to 22.12). */
import { Value } from '@sinclair/typebox/value';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ExplanationSchema } from '../../src/api/schemas.ts';
import { openTimedWorld, type TimedWorld, to } from './support/timed-world.ts';
import { type Json, LIMITS, type Reply } from './support/world.ts';

let world: TimedWorld;
beforeEach(async () => {
  world = await openTimedWorld();
});
afterEach(() => world.close());

const SECOND = 1_000;

async function enqueue(queue: string, url: string, headers: Record<string, string> = {}): Promise<string> {
  const reply = await world.post(`enqueue/${queue}/${url}`, undefined, headers);
  expect(reply.status, reply.text).toBe(200);
  return reply.json.messageId;
}

async function enqueueAll(queue: string, names: string[], headers: Record<string, string> = {}): Promise<string[]> {
  const ids: string[] = [];
  for (const name of names) ids.push(await enqueue(queue, to(name), headers));
  return ids;
}

async function upsert(queueName: string, settings: Json = {}): Promise<void> {
  const reply = await world.post('queues', { queueName, ...settings });
  expect([reply.status, reply.text]).toEqual([200, '']);
}

const pause = (name: string) => world.post(`queues/${name}/pause`);
const resume = (name: string) => world.post(`queues/${name}/resume`);
const drop = (name: string): Promise<Reply> => world.ask({ method: 'DELETE', url: `/v2/queues/${name}` });
const queue = async (name: string): Promise<Json> => (await world.get(`queues/${name}`)).json;
const lag = async (name: string): Promise<number> => (await queue(name)).lag;
const explain = async (id: string): Promise<Json> => {
  const { json } = await world.get(`messages/${id}/explain`);
  expect(Value.Check(ExplanationSchema, json)).toBe(true);
  return json;
};
const statesOf = async (id: string): Promise<string[]> =>
  (await world.get(`logs?messageId=${id}&order=earliestFirst`)).json.logs.map(({ state }: Json) => state);
const pass = (seconds: number): Promise<void> => world.clock.advanceBy(seconds * SECOND);

describe('a queue', () => {
  it('gets its defaults for what an update leaves out (contract M 22.7)', async () => {
    await upsert('q', { parallelism: 3, paused: true });
    const { createdAt } = await queue('q');
    await pass(5);
    await upsert('q', { parallelism: null, paused: null, unknown: 1 });
    const changed = await queue('q');
    expect(changed).toMatchObject({ createdAt, parallelism: 1, paused: false });
    expect(changed.updatedAt - createdAt).toBe(5 * SECOND);
  });

  it.each<[string, unknown, RegExp]>([
    ['nothing', undefined, /^invalid request body: an object is needed/],
    ['no JSON', '{', /^invalid request body: not valid JSON/],
    ['an array', [], /^invalid request body: an object is needed/],
    ['no name', { parallelism: 1 }, /queueName must be a string/],
    ['a number as name', { queueName: 1 }, /queueName must be a string/],
    ['an empty name', { queueName: '' }, /^invalid queue name: it must not be empty/],
    ['a blank in the name', { queueName: 'a b' }, /^invalid queue name a b: only letters/],
    ['a slash in the name', { queueName: 'a/b' }, /^invalid queue name a\/b: only letters/],
    ['a long name', { queueName: 'x'.repeat(256) }, /at most 255 characters/],
    ['parallelism 0', { queueName: 'q', parallelism: 0 }, /parallelism must be a whole number of at least 1$/],
    ['half a parallelism', { queueName: 'q', parallelism: 1.5 }, /parallelism must be a whole number/],
    ['a text as parallelism', { queueName: 'q', parallelism: '2' }, /parallelism must be a whole number/],
    ['a text as pause', { queueName: 'q', paused: 'true' }, /paused must be true or false$/],
  ])('is not made of %s', async (_name, body, error) => {
    const reply = await world.post('queues', body);
    expect([reply.status, reply.json.error]).toEqual([400, expect.stringMatching(error)]);
    expect((await world.get('queues')).json).toEqual([]);
  });

  it.each([
    ['GET', 'a%20b'],
    ['DELETE', 'a%2Fb'],
    ['POST', 'a%20b/pause'],
    ['POST', '/pause'],
    ['POST', 'a%20b/resume'],
  ] as const)('is not found under a wrong name: %s %s', async (method, path) => {
    const reply = await world.ask({ method, url: `/v2/queues/${path}` });
    expect([reply.status, reply.json.error]).toEqual([400, expect.stringMatching(/^invalid queue name/)]);
  });

  it('that nobody made is not there to be read, paused or resumed, and can be deleted', async () => {
    for (const reply of [await world.get('queues/q'), await pause('q'), await resume('q')]) {
      expect([reply.status, reply.json.error]).toEqual([404, 'queue q not found']);
    }
    expect(await drop('q')).toMatchObject({ status: 200, text: '' });
  });

  it('is one more than a project may have, however it would come to be (contract M 20.1, 22.2, 22.3)', async () => {
    const error = `quota maxQueues exceeded, current limit: ${LIMITS.queuesMax}`;
    for (let n = 0; n < LIMITS.queuesMax; n += 1) await upsert(`q${n}`);
    const tooMany = [await world.post('queues', { queueName: 'q' }), await world.post(`enqueue/q/${to('a')}`)];
    for (const reply of tooMany) expect([reply.status, reply.json.error]).toEqual([412, error]);
    const batch = [
      { destination: to('b'), queue: 'q' },
      { destination: to('c'), queue: 'q0' },
    ];
    const { status, json } = await world.post('batch', batch);
    expect([status, json[0], json[1].messageId]).toEqual([200, { error }, expect.stringMatching(/^msg_/)]);
    await upsert('q0', { parallelism: 2 });
    expect((await world.get('queues')).json.map(({ name }: Json) => name)).toEqual(['q0', 'q1', 'q2', 'q3', 'q4']);
  });

  it('has no more parallelism than the quota, which refuses growth only', async () => {
    const tooMuch = await world.post('queues', { queueName: 'q', parallelism: 11 });
    expect([tooMuch.status, tooMuch.json.error]).toEqual([
      412,
      'quota maxQueueParallelism exceeded, current limit: 10',
    ]);
    expect((await world.get('queues/q')).status).toBe(404);
    await upsert('q', { parallelism: 10 });
    // As if the quota had been lowered since.
    await world.engine.storeOf(1).queues.saveQueue({ name: 'q', parallelism: 20, isPaused: true });
    await upsert('q', { parallelism: 20 });
    expect((await world.post('queues', { queueName: 'q', parallelism: 21 })).status).toBe(412);
    expect(await queue('q')).toMatchObject({ parallelism: 20, paused: false });
  });

  it('is not made by a message that is a duplicate, nor by one that is refused (contract M 22.2)', async () => {
    const headers = { 'upstash-deduplication-id': 'once' };
    await world.publish(to('a'), headers);
    const duplicate = await world.post(`enqueue/q/${to('a')}`, undefined, headers);
    expect([duplicate.status, duplicate.json.deduplicated]).toEqual([202, true]);
    const refused = { 'upstash-delay': '5', 'upstash-not-before': '5', 'upstash-cron': '@daily' };
    for (const [option, value] of Object.entries(refused)) {
      const reply = await world.post(`enqueue/q/${to('a')}`, undefined, { [option]: value });
      expect([reply.status, reply.json.error]).toEqual([400, expect.stringMatching(/is not supported for queues$/)]);
    }
    for (const path of ['enqueue/q', 'enqueue/q/']) {
      const reply = await world.post(path);
      expect([reply.status, reply.json.error]).toEqual([400, 'a non-empty destination must be provided']);
    }
    expect((await world.get('queues')).json).toEqual([]);
  });

  it('is listed page by page, each after the last name of the one before', async () => {
    for (const name of ['a', 'b', 'c']) await upsert(name);
    const names = async (query: string) => (await world.get(`queues?${query}`)).json.map(({ name }: Json) => name);
    expect(await names('count=2')).toEqual(['a', 'b']);
    expect(await names('count=2&after=b')).toEqual(['c']);
    expect(await names('after=c')).toEqual([]);
    expect((await world.get('queues?count=0')).status).toBe(400);
  });
});

describe('messages of a queue', () => {
  it('go out one after the other, in the order of acceptance, retries included', async () => {
    const retries = { 'upstash-retries': '2', 'upstash-retry-delay': '10000' };
    const first = await enqueue('q', to('a', 1, 500), retries);
    const others = await enqueueAll('q', ['b', 'c']);
    await pass(5);
    expect(await explain(others[1] ?? '')).toMatchObject({
      reason: 'queued',
      explanation: expect.stringContaining('Waits in queue q behind 2 messages (parallelism 1).'),
      queueName: 'q',
      ahead: 2,
    });
    expect(await queue('q')).toMatchObject({ lag: 3, blockedBy: { messageId: first } });
    await pass(60);
    expect(world.starts()).toEqual(['a@0', 'a@11', 'a@22', 'b@23', 'c@24']);
    expect(await statesOf(first)).toEqual(
      'CREATED ACTIVE ERROR RETRY ACTIVE ERROR RETRY ACTIVE ERROR FAILED'.split(' '),
    );
    expect(await lag('q')).toBe(0);
  });

  it('go when they are deleted with it: waiting ones at once, running ones after their attempt (contract M 14.7)', async () => {
    const running = await enqueue('q', to('a', 10, 500), { 'upstash-retries': '3', 'upstash-retry-delay': '1000' });
    const waiting = await enqueueAll('q', ['b', 'c']);
    await pass(1);
    expect(await drop('q')).toMatchObject({ status: 200, text: '' });
    expect((await world.get('queues/q')).status).toBe(404);
    for (const id of waiting) {
      expect((await world.get(`messages/${id}`)).status).toBe(404);
      expect(await statesOf(id)).toEqual(['CREATED', 'CANCEL_REQUESTED', 'CANCELED']);
    }
    await enqueue('q', to('d'));
    expect(await queue('q')).toMatchObject({ parallelism: 1, lag: 1 });
    await pass(30);
    expect(world.starts()).toEqual(['a@0', 'd@1']);
    expect((await statesOf(running)).at(-1)).toBe('CANCELED');
    expect((await world.get('dlq')).json.messages).toEqual([]);
    expect(await lag('q')).toBe(0);
  });

  it('that are many are all gone when it is deleted', async () => {
    await upsert('q', { paused: true });
    for (let n = 0; n < 12; n += 1) {
      await world.post('batch', Array(100).fill({ destination: to('x'), queue: 'q' }));
    }
    expect(await lag('q')).toBe(1_200);
    await drop('q');
    expect((await world.ask({ method: 'DELETE', url: '/v2/messages' })).json).toEqual({ cancelled: 0 });
    await pass(10);
    expect(world.starts()).toEqual([]);
  });

  it('to a URL group are one for each endpoint, in their order (contract M 14.6)', async () => {
    const endpoints = ['a', 'b', 'c'].map((name) => ({ url: to(name) }));
    await world.post('topics/g/endpoints', { endpoints });
    const { status, json } = await world.post('enqueue/q/g');
    expect([status, json.length, await lag('q')]).toEqual([200, 3, 3]);
    await pass(10);
    expect(world.starts()).toEqual(['a@0', 'b@1', 'c@2']);
    const unknown = await world.post('enqueue/other/nobody');
    expect([unknown.status, unknown.json.error]).toEqual([404, 'topic nobody not found']);
    expect((await world.get('queues/other')).status).toBe(404);
  });

  it('that die make room, and go to the end when they are retried from the DLQ (contract M 17)', async () => {
    await enqueue('q', to('a', 1, 500), { 'upstash-retries': '0' });
    await enqueue('q', to('b'));
    await pass(5);
    const [dead] = (await world.get('dlq?queueName=q')).json.messages;
    expect(dead).toMatchObject({ queueName: 'q', url: to('a', 1, 500) });
    await enqueue('q', to('c', 10));
    expect((await world.post(`dlq/retry/${dead.dlqId}`)).status).toBe(201);
    await enqueue('q', to('d'));
    await pass(30);
    expect(world.starts()).toEqual(['a@0', 'b@1', 'c@5', 'a@15', 'd@16']);
  });

  it('hold the line until their time when they are retried with a delay', async () => {
    await enqueue('q', to('a', 1, 500), { 'upstash-retries': '0' });
    await pass(5);
    const [dead] = (await world.get('dlq')).json.messages;
    await world.post(`dlq/retry/${dead.dlqId}`, undefined, { 'upstash-delay': '10s' });
    await enqueue('q', to('b'));
    await pass(30);
    expect(world.starts()).toEqual(['a@0', 'a@15', 'b@16']);
  });
});
