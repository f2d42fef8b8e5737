/**
 * The official client for JavaScript, unchanged, with a complete server: the newest version, and the oldest whose requests
 * follow the contract (2.1.8; older ones use other paths). The test calls every method of both.
 */
import * as newestPackage from '@upstash/qstash';
import * as oldestPackage from 'qstash-oldest';
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { Driven } from './support/driven.ts';
import { Subject } from './support/subject.ts';

/** Out of the contract's scope (contract M 27). */
const OUT_OF_SCOPE = /^(chat|workflow)\b/;

function isIgnored(method: string): boolean {
  return OUT_OF_SCOPE.test(method);
}

const HOUR = { delay: 3600 };

describe('the newest official client', () => {
  let server: Subject;
  let driven: Driven<newestPackage.Client>;
  let client: newestPackage.Client;
  beforeAll(async () => {
    server = await Subject.open();
    driven = new Driven(new newestPackage.Client({ baseUrl: server.url, token: server.token, retry: false }));
    client = driven.client;
  });
  afterAll(async () => {
    await server.close();
    expect(server.warnings.filter(({ event }) => event === 'option_ignored')).toEqual([]);
  });

  it('publishes in all its ways', async () => {
    const url = server.destination('/a');
    const sent = await client.publish({ url, body: 'text', headers: { 'My-Header': 'mine' }, method: 'PUT' });
    expect(sent.url).toBe(url);
    const received = await server.endpoint.arrival('/a');
    expect([received.method, received.body.toString(), received.headers['my-header']]).toEqual(['PUT', 'text', 'mine']);
    const { messageId } = await client.publishJSON({
      url,
      body: { n: 1 },
      ...HOUR,
      retries: 2,
      retryDelay: '1000 * retried',
      timeout: 10,
      label: ['one', 'two'],
      redact: { header: ['Authorization'] },
      headers: { Authorization: 'secret' },
    });
    expect(await client.messages.get(messageId)).toMatchObject({
      body: '{"n":1}',
      maxRetries: 2,
      retryDelayExpression: '1000 * retried',
      labels: ['one', 'two'],
      header: { 'Content-Type': ['application/json'], Authorization: [expect.stringMatching(/^REDACTED:/)] },
    });
    const once = { url, contentBasedDeduplication: true, body: 'same', ...HOUR };
    await client.publish(once);
    expect(await client.publish(once)).toMatchObject({ deduplicated: true });
    const batch = await client.batch([{ url, body: 'b', ...HOUR }]);
    const jsonBatch = await client.batchJSON([{ url, body: { b: 1 }, ...HOUR, label: 'three' }]);
    expect([batch.length, jsonBatch.length]).toEqual([1, 1]);
  });

  it('reads and cancels messages', async () => {
    const url = server.destination('/cancel');
    const publish = async (label: string): Promise<string> =>
      (await client.publish({ url, label, notBefore: Math.ceil(server.clock.nowMs() / 1000) + 3600 })).messageId;
    const ids = [await publish('a'), await publish('b'), await publish('c'), await publish('d'), await publish('e')];
    const [a = '', b = '', c = '', d = ''] = ids;
    expect(await client.messages.get(a)).toMatchObject({ messageId: a, url, label: 'a' });
    expect(await client.messages.cancel(a)).toEqual({ cancelled: 1 });
    await expect(client.messages.get(a)).rejects.toThrow(`message ${a} not found`);
    expect(await client.messages.cancel({ filter: { label: ['a', 'b', 'nobodys'] } })).toEqual({ cancelled: 1 });
    await client.messages.delete(c);
    expect(await client.messages.deleteMany([d, b])).toBe(1);
    expect(await client.messages.cancel({ filter: { url }, count: 10 })).toEqual({ cancelled: 1 });
    expect(await client.messages.deleteAll()).toBeGreaterThan(0);
    expect(await client.messages.cancel({ all: true })).toEqual({ cancelled: 0 });
  });

  it('cancels all that match in one call, as many as it asks for, and in a loop that ends', async () => {
    const url = server.destination('/cancelled');
    const publish = (count: number) => client.batch(Array.from({ length: count }, () => ({ url, body: 'a', ...HOUR })));
    await Promise.all([publish(125), publish(125)]);
    expect(await client.messages.cancel({ all: true })).toEqual({ cancelled: 250 });
    const [oldest] = await publish(150);
    expect(await client.messages.cancel({ filter: { url }, count: 1 })).toEqual({ cancelled: 1 });
    await expect(client.messages.get(oldest && 'messageId' in oldest ? oldest.messageId : 'none')).rejects.toThrow(
      'not found',
    );
    const cancelled: number[] = [];
    do cancelled.push((await client.messages.cancel({ filter: { url }, count: 60 })).cancelled);
    while (cancelled.at(-1) !== 0);
    expect(cancelled).toEqual([60, 60, 29, 0]);
    await publish(120);
    const unasked: number[] = [];
    do unasked.push((await client.messages.cancel({ filter: { url } })).cancelled);
    while (unasked.at(-1) !== 0);
    expect(unasked).toEqual([120, 0]);
  });

  it('reads logs', async () => {
    const { messageId } = await client.publish({ url: server.destination('/logged') });
    await server.finished(messageId);
    const { logs, cursor } = await client.logs({ filter: { messageId } });
    expect([logs.map(({ state }) => state), cursor]).toEqual([['DELIVERED', 'ACTIVE', 'CREATED'], undefined]);
    expect((await client.events({ messageIds: [messageId] })).events).toHaveLength(3);
    expect((await client.logs({ count: 1, filter: { state: 'DELIVERED', path: '/logged' } })).logs).toHaveLength(1);
  });

  it('reads, retries and deletes dead messages', async () => {
    const ids: string[] = [];
    for (const path of ['/1', '/2', '/3', '/4', '/5'])
      ids.push((await server.bury(path, { 'Upstash-Label': 'dead' })).dlqId);
    for (const path of ['/1', '/4']) server.endpoint.replies(path);
    const [first = '', second = '', third = '', fourth = ''] = ids;
    const { messages } = await client.dlq.listMessages({ count: 2 });
    expect(messages.map(({ responseStatus, responseBody }) => [responseStatus, responseBody])).toEqual([
      [500, 'broken'],
      [500, 'broken'],
    ]);
    const page = await client.dlq.listMessages({ filter: { label: 'dead' }, count: 3 });
    expect(
      (await client.dlq.listMessages({ filter: { label: 'dead' }, cursor: page.cursor ?? '' })).messages,
    ).toHaveLength(2);
    expect(await client.dlq.retry(first)).toEqual({ responses: [{ messageId: expect.stringMatching(/^msg_/) }] });
    await expect(client.dlq.retry(first)).rejects.toThrow('not found');
    expect(await client.dlq.delete(second)).toEqual({ deleted: 1 });
    expect(await client.dlq.deleteMany({ dlqIds: [second, third] })).toEqual({ deleted: 1 });
    expect((await client.dlq.retry({ filter: { url: server.destination('/4') } })).responses).toHaveLength(1);
    await expect(client.dlq.delete(fourth)).rejects.toThrow(`dlq message ${fourth} not found`);
    expect(await client.dlq.delete({ all: true })).toEqual({ deleted: 1 });
  });

  it.each(['urlGroups', 'topics'] as const)('makes, changes and removes URL groups as %s', async (name) => {
    const groups = client[name];
    const one = { url: server.destination('/one'), name: 'one' };
    const two = { url: server.destination('/two') };
    await groups.addEndpoints({ name, endpoints: [one, two] });
    expect(await groups.get(name)).toMatchObject({ name, endpoints: [one, two] });
    expect(await groups.list()).toHaveLength(1);
    const published = await client.publishJSON({ urlGroup: name, body: 1, ...HOUR });
    expect(published.map(({ url }) => url)).toEqual([one.url, two.url]);
    await groups.removeEndpoints({ name, endpoints: [{ name: 'one' }] });
    expect((await groups.get(name)).endpoints).toEqual([two]);
    await groups.delete(name);
    await expect(groups.get(name)).rejects.toThrow(`topic ${name} not found`);
  });

  it('makes, fills, pauses and removes queues', async () => {
    const queue = client.queue({ queueName: 'queue' });
    await queue.upsert({ parallelism: 2 });
    await queue.pause();
    await queue.enqueue({ url: server.destination('/queued?n=1') });
    await queue.enqueueJSON({ url: server.destination('/queued?n=2'), body: { n: 2 } });
    await client.batchJSON([{ url: server.destination('/cancelled'), queueName: 'queue', body: 3, label: 'three' }]);
    expect(await queue.get()).toMatchObject({ name: 'queue', parallelism: 2, paused: true, lag: 3 });
    const filter = { queueName: 'queue', label: 'three' };
    expect(await client.messages.cancel({ filter })).toEqual({ cancelled: 1 });
    expect(await queue.list()).toHaveLength(1);
    await queue.resume();
    await server.endpoint.arrival('/queued', 2);
    await queue.delete();
    await expect(queue.get()).rejects.toThrow('not found');
  });

  it('makes, pauses and removes schedules', async () => {
    const { scheduleId } = await client.schedules.create({
      destination: server.destination('/scheduled'),
      cron: '* * * * *',
      body: '{}',
      retries: 1,
      label: 'tick',
    });
    expect(await client.schedules.get(scheduleId)).toMatchObject({ cron: '* * * * *', retries: 1, body: '{}' });
    expect(await client.schedules.list()).toHaveLength(1);
    await client.schedules.pause({ schedule: scheduleId });
    expect((await client.schedules.get(scheduleId)).isPaused).toBe(true);
    await client.schedules.resume({ schedule: scheduleId });
    expect((await client.schedules.get(scheduleId)).isPaused).toBe(false);
    await client.schedules.delete(scheduleId);
    await expect(client.schedules.get(scheduleId)).rejects.toThrow('not found');
  });

  it('limits, pins and pauses flow-control keys', async () => {
    await client.flowControl.pause('key');
    await client.publish({
      url: server.destination('/limited'),
      flowControl: { key: 'key', parallelism: 3, rate: 4, period: '2s' },
    });
    expect(await client.flowControl.get('key')).toMatchObject({
      waitListSize: 1,
      parallelismMax: 3,
      rateMax: 4,
      ratePeriod: 2,
      isPaused: true,
    });
    await client.flowControl.pin('key', { parallelism: 1, rate: 1, period: 60 });
    await client.flowControl.unpin('key', { rate: true });
    expect(await client.flowControl.get('key')).toMatchObject({ isPinnedParallelism: true, isPinnedRate: false });
    await client.flowControl.resume('key');
    await server.endpoint.arrival('/limited');
    await client.flowControl.resetRate('key');
    expect((await client.flowControl.get('key')).rateCount).toBe(0);
    const { parallelismMax, parallelismCount } = await client.flowControl.getGlobalParallelism();
    expect([parallelismMax >= 0, parallelismCount >= 0]).toEqual([true, true]);
  });

  it('is told what is wrong in errors of its own', async () => {
    const wrong = new newestPackage.Client({ baseUrl: server.url, token: 'wrong', retry: false });
    await expect(wrong.logs()).rejects.toThrow('unable to authenticate: invalid token');
    const refused = client.publish({ url: server.destination('/a'), retries: 5000 });
    await expect(refused).rejects.toBeInstanceOf(newestPackage.QstashError);
  });

  it('has no method that was not called', () => {
    expect(driven.missed(isIgnored)).toEqual([]);
  });
});

describe('the oldest official client', () => {
  let server: Subject;
  let driven: Driven<oldestPackage.Client>;
  let client: oldestPackage.Client;
  beforeAll(async () => {
    server = await Subject.open();
    driven = new Driven(new oldestPackage.Client({ baseUrl: server.url, token: server.token, retry: false }));
    client = driven.client;
  });
  afterAll(async () => {
    await server.close();
    expect(server.warnings.filter(({ event }) => event === 'option_ignored')).toEqual([]);
  });

  it('publishes, reads and cancels', async () => {
    const url = server.destination('/a?b=c');
    const { messageId = '' } = await client.publishJSON({ url, body: JSON.stringify({ n: 1 }), delay: 60, retries: 2 });
    expect(await client.messages.get(messageId)).toMatchObject({ messageId, url, maxRetries: 2, method: 'POST' });
    await client.messages.delete(messageId);
    await expect(client.messages.get(messageId)).rejects.toThrow(`message ${messageId} not found`);
    const once = { url, body: 'text', deduplicationId: 'once' };
    const first = await client.publish(once);
    expect(await client.publish(once)).toMatchObject({ messageId: first.messageId });
    expect((await server.endpoint.arrival('/a')).body.toString()).toBe('text');
  });

  it('reads logs page by page', async () => {
    await client.publish({ url: server.destination('/logged'), delay: 60 });
    const { events } = await client.events();
    expect(events[0]).toMatchObject({ state: 'CREATED', url: server.destination('/logged') });
    const untilNow = await client.events({ cursor: server.clock.nowMs() }); // its documentation starts with the time
    expect(untilNow.events).toEqual(events);
  });

  it('reads and deletes dead messages', async () => {
    const { dlqId, messageId } = await server.bury('/dead');
    const { messages } = await client.dlq.listMessages();
    expect(messages).toMatchObject([{ dlqId, messageId }]);
    await client.dlq.delete(dlqId);
    expect((await client.dlq.listMessages()).messages).toEqual([]);
  });

  it('makes, changes and removes groups, and publishes to them', async () => {
    const one = { url: server.destination('/one'), name: 'one' };
    const two = { url: server.destination('/two') };
    await client.topics.addEndpoints({ name: 'group', endpoints: [one, two] });
    expect(await client.topics.get('group')).toMatchObject({ name: 'group', endpoints: [one, two] });
    expect(await client.topics.list()).toHaveLength(1);
    await client.publish({ topic: 'group', body: 'all' });
    await server.endpoint.arrival('/one');
    await server.endpoint.arrival('/two');
    await client.topics.removeEndpoints({ name: 'group', endpoints: [{ name: 'one' }] });
    expect((await client.topics.get('group')).endpoints).toEqual([two]);
    await client.topics.delete('group');
    await expect(client.topics.get('group')).rejects.toThrow('topic group not found');
  });

  it('makes and removes schedules', async () => {
    const destination = server.destination('/scheduled');
    const { scheduleId } = await client.schedules.create({ destination, cron: '* * * * *', retries: 1 });
    expect(await client.schedules.get(scheduleId)).toMatchObject({ destination, cron: '* * * * *', retries: 1 });
    expect(await client.schedules.list()).toHaveLength(1);
    await client.schedules.delete(scheduleId);
    await expect(client.schedules.get(scheduleId)).rejects.toThrow('not found');
  });

  it('is told what is wrong in errors of its own', async () => {
    const refused = client.publish({ url: 'no-url at all' });
    await expect(refused).rejects.toBeInstanceOf(oldestPackage.QstashError);
  });

  it('has no method that was not called', () => {
    expect(driven.missed(isIgnored)).toEqual([]);
  });
});

describe.each([
  { version: 'newest', Receiver: newestPackage.Receiver },
  { version: 'oldest', Receiver: oldestPackage.Receiver },
])('the $version official receiver', ({ version, Receiver }) => {
  /** A delivery of a fresh server, and the keys that it knew before it. */
  async function deliver({ onTestFinished }: TestContext, rotations = 0) {
    const server = await Subject.open();
    onTestFinished(() => server.close());
    const { current: currentSigningKey, next: nextSigningKey } = await server.get('/v2/keys');
    for (let nth = 1; nth <= rotations; nth += 1) await server.post('/v2/keys/rotate');
    await server.publish('/a?b=c', {}, 'grün');
    const { headers, body } = await server.endpoint.arrival('/a');
    const delivery = { signature: String(headers['upstash-signature']), body: body.toString() };
    return { server, delivery, receiver: new Receiver({ currentSigningKey, nextSigningKey }) };
  }

  it('accepts a delivery, with and without the URL that it is for', async (context) => {
    const { server, delivery, receiver } = await deliver(context);
    expect(await receiver.verify(delivery)).toBe(true);
    expect(await receiver.verify({ ...delivery, url: server.destination('/a?b=c') })).toBe(true);
  });

  it('refuses another body, another URL and another signature', async (context) => {
    const { server, delivery, receiver } = await deliver(context);
    await expect(receiver.verify({ ...delivery, body: 'blau' })).rejects.toThrow();
    await expect(receiver.verify({ ...delivery, url: server.destination('/a') })).rejects.toThrow();
    const [head, claims, mac = ''] = delivery.signature.split('.');
    const signature = `${head}.${claims}.${mac.startsWith('A') ? 'B' : 'A'}${mac.slice(1)}`;
    await expect(receiver.verify({ ...delivery, signature })).rejects.toThrow();
  });

  it('accepts deliveries after a rotation with the new keys', async (context) => {
    const { server, delivery } = await deliver(context, 1);
    const { current: currentSigningKey, next: nextSigningKey } = await server.get('/v2/keys');
    expect(await new Receiver({ currentSigningKey, nextSigningKey }).verify(delivery)).toBe(true);
  });

  it('refuses deliveries after two rotations with the old keys', async (context) => {
    const { delivery, receiver } = await deliver(context, 2);
    await expect(receiver.verify(delivery)).rejects.toThrow();
  });

  // The oldest one gives up at the first key that does not fit, which is a fault of its own.
  if (version === 'newest') {
    it('accepts deliveries after a rotation with the old keys', async (context) => {
      const { delivery, receiver } = await deliver(context, 1);
      expect(await receiver.verify(delivery)).toBe(true);
    });
  }
});
