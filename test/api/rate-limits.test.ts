/** The limits of contract M 20.3, on a clock that only the test advances. */
import { Client, QstashDailyRatelimitError, QstashRatelimitError } from '@upstash/qstash';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { LIMITS, OTHER_TOKEN, openWorld, PUBLISH_ONLY_TOKEN, type Reply, TOKEN, type World } from './support/world.ts';

const NOON_MS = Date.UTC(2026, 5, 30, 12);
const MIDNIGHT_MS = Date.UTC(2026, 6, 1);

let clock: SimulatedClock;
let world: World;
beforeEach(() => {
  clock = new SimulatedClock(NOON_MS);
});
afterEach(() => world.close());

const publish = (world: World, token = TOKEN): Promise<Reply> =>
  world.ask({
    method: 'POST',
    url: '/v2/publish/https://slow.example/',
    headers: { authorization: `Bearer ${token}`, 'upstash-delay': '30d' },
  });
const read = (world: World, token = TOKEN): Promise<Reply> =>
  world.ask({ method: 'GET', url: '/v2/logs', headers: { authorization: `Bearer ${token}` } });

describe('messages of a day', () => {
  const open = async (messagesPerDayMax: number) => {
    world = await openWorld({}, { clock, messagesPerDayMax });
  };

  it('are those of the project, whichever of its tokens publishes', async () => {
    await open(1);
    expect((await publish(world, PUBLISH_ONLY_TOKEN)).status).toBe(200);
    expect((await publish(world)).status).toBe(429);
    expect((await publish(world, OTHER_TOKEN)).status).toBe(200);
  });

  it('refuse a batch that needs more than there are, as a whole, and say how many are left', async () => {
    await open(3);
    const batch = (count: number) =>
      world.ask({
        method: 'POST',
        url: '/v2/batch',
        payload: JSON.stringify(
          Array.from({ length: count }, () => ({
            destination: 'https://slow.example/',
            headers: { 'upstash-delay': '1h' },
          })),
        ),
      });
    expect((await batch(2)).status).toBe(200);
    const before = await world.countStored();
    const refused = await batch(2);
    expect([refused.status, refused.headers['ratelimit-remaining']]).toEqual([429, '1']);
    expect(await world.countStored()).toBe(before);
    expect((await batch(1)).status).toBe(200);
  });

  it('count each endpoint of a URL group', async () => {
    await open(3);
    const endpoints = [{ url: 'https://slow.example/1' }, { url: 'https://slow.example/2' }];
    await world.ask({ method: 'POST', url: '/v2/topics/pair/endpoints', payload: JSON.stringify({ endpoints }) });
    const toGroup = () => world.ask({ method: 'POST', url: '/v2/publish/pair', headers: { 'upstash-delay': '1h' } });
    expect((await toGroup()).status).toBe(200);
    expect((await toGroup()).headers['ratelimit-remaining']).toBe('1');
  });

  it('cost the refused no place among the attempts in flight', async () => {
    world = await openWorld({}, { clock, messagesPerDayMax: 1, settings: { inFlightMax: 1, inFlightPerOriginMax: 1 } });
    const atOnce = () => world.ask({ method: 'POST', url: '/v2/publish/https://slow.example/' });
    await publish(world);
    expect((await atOnce()).status).toBe(429);
    clock.jumpBy(MIDNIGHT_MS - NOON_MS);
    const { json } = await atOnce();
    const explained = await world.ask({ method: 'GET', url: `/v2/messages/${json.messageId}/explain` });
    expect(explained.json.reason).toBe('attempting');
    // What is in flight keeps the engine open until its limit has passed.
    const drained = world.engine.drain(0);
    await clock.advanceBy(1);
    await drained;
  });

  it('bound nothing else: what is there can be read, cancelled and retried', async () => {
    await open(2);
    const dlqId = await world.bury('https://fail.example/');
    await publish(world);
    expect((await publish(world)).status).toBe(429);
    expect((await read(world)).status).toBe(200);
    expect((await world.ask({ method: 'POST', url: `/v2/dlq/retry/${dlqId}` })).status).toBe(201);
    expect((await world.ask({ method: 'DELETE', url: '/v2/messages' })).status).toBe(200);
  });

  it('are an error of their own to the official client', async () => {
    await open(1);
    const { url } = await world.listen();
    const client = new Client({ baseUrl: url, token: TOKEN, retry: false });
    await client.publish({ url: 'https://slow.example/', delay: 60 });
    const error = await client.publish({ url: 'https://slow.example/' }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(QstashDailyRatelimitError);
    expect(error).toMatchObject({ status: 429, limit: '1', remaining: '0', reset: String(MIDNIGHT_MS / 1000) });
  });
});

describe('requests of a second', () => {
  const open = async (requestsPerSecondMax: number) => {
    world = await openWorld({ limits: { ...LIMITS, requestsPerSecondMax } }, { clock });
  };

  it('come anew with the next second', async () => {
    await open(1);
    await read(world);
    clock.jumpBy(999);
    expect((await read(world)).status).toBe(429);
    clock.jumpBy(1);
    expect((await read(world)).status).toBe(200);
  });

  it('are those of a project, and of no other', async () => {
    await open(1);
    await read(world);
    expect((await read(world, OTHER_TOKEN)).status).toBe(200);
    expect((await read(world)).status).toBe(429);
  });

  it('do not count publishing, and count everything else that asks for a token', async () => {
    await open(1);
    const counted: string[] = [];
    for (const { method, path, access } of world.routes) {
      clock.jumpBy(1000);
      await read(world);
      const url = path.replace(/:\w+/, 'x').replace('*', 'https://slow.example/');
      const { status } = await world.ask({ method, url, headers: { 'upstash-delay': '1h' } });
      const isExempt = access === 'public' || access === 'publish';
      expect([path, status === 429]).toEqual([path, !isExempt]);
      if (status === 429) counted.push(path);
    }
    expect(counted.length).toBeGreaterThan(15);
  });

  it('are an error of their own to the official client', async () => {
    await open(1);
    const { url } = await world.listen();
    const client = new Client({ baseUrl: url, token: TOKEN, retry: false });
    await client.logs();
    const error = await client.logs().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(QstashRatelimitError);
    expect(error).toMatchObject({ status: 429, limit: '1', remaining: '0', reset: String(NOON_MS / 1000 + 1) });
  });
});

it('neither limit is there unless it is set', async () => {
  world = await openWorld({}, { clock });
  const statuses = new Set<number>();
  for (let request = 0; request < 20; request += 1) {
    statuses.add((await publish(world)).status).add((await read(world)).status);
  }
  expect([...statuses]).toEqual([200]);
});
