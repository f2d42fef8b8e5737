/** Schedules over HTTP (contract M 15, 22.13, 22.17). */
import { Value } from '@sinclair/typebox/value';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ScheduleSchema } from '../../src/api/schemas.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { LIMITS, openWorld, PUBLISH_ONLY_TOKEN, type Reply, type World } from './support/world.ts';

const OK = 'https://ok.example/hook';
const SLOW = 'https://slow.example/hook';
const MINUTE_MS = 60_000;

let world: World;
let clock: SimulatedClock;
beforeEach(async () => {
  clock = new SimulatedClock();
  world = await openWorld({}, { clock });
});
afterEach(async () => {
  const drained = world.engine.drain(0);
  await clock.advanceBy(1);
  await drained;
  await world.close();
});

const post = (destination: string, headers: Record<string, string> = {}, payload: string | Buffer = '') =>
  world.ask({ method: 'POST', url: `/v2/schedules/${destination}`, headers, payload });
const get = (id: string) => world.ask({ method: 'GET', url: `/v2/schedules/${id}` });
const list = () => world.ask({ method: 'GET', url: '/v2/schedules' });

/** Creates a schedule for every ten minutes, unless `headers` say otherwise, and returns its id. */
async function create(destination: string, headers: Record<string, string> = {}, payload: string | Buffer = '') {
  const reply = await post(destination, { 'upstash-cron': '*/10 * * * *', ...headers }, payload);
  expect(reply.status, reply.text).toBe(200);
  return reply.json.scheduleId as string;
}

async function shown(id: string) {
  const { status, json } = await get(id);
  expect([status, [...Value.Errors(ScheduleSchema, json)]]).toEqual([200, []]);
  return json;
}

/** What the latest trigger of a schedule made. */
async function lastMessages(id: string) {
  const { lastScheduleStates } = await shown(id);
  const ids = Object.keys(lastScheduleStates ?? {});
  return Promise.all(ids.map(async (messageId) => (await world.ask({ url: `/v2/messages/${messageId}` })).json));
}

async function expectRefused(reply: Promise<Reply>, status: number, error: string | RegExp): Promise<void> {
  const { status: actual, json } = await reply;
  expect([actual, json?.error]).toEqual([status, typeof error === 'string' ? error : expect.stringMatching(error)]);
  expect((await list()).json).toEqual([]);
}

describe('a created schedule', () => {
  it('has an id of its own and shows what was asked for (contract M 15.1)', async () => {
    const headers = {
      'upstash-cron': '  CRON_TZ=America/New_York 0 4 * * *  ',
      'content-type': 'application/json',
      'upstash-forward-x-key': 'v',
      'upstash-method': 'put',
      'upstash-retries': '5',
      'upstash-delay': '30s',
      'upstash-timeout': '1m',
      'upstash-retry-delay': '1000 * retried',
      'upstash-label': 'a, b',
      'upstash-queue-name': 'q',
      'waypost-schedule-catch-up': 'skip',
    };
    const id = await create(OK, headers, '{"hello":"world"}');
    expect(id).toMatch(/^scd_[1-9A-HJ-NP-Za-km-z]{28}$/);
    expect(await shown(id)).toEqual({
      scheduleId: id,
      cron: 'CRON_TZ=America/New_York 0 4 * * *',
      createdAt: clock.nowMs(),
      destination: OK,
      method: 'PUT',
      header: { 'Content-Type': ['application/json'], 'X-Key': ['v'] },
      body: '{"hello":"world"}',
      retries: 5,
      delay: 30,
      timeout: 60_000,
      retryDelayExpression: '1000 * retried',
      label: 'a',
      labels: ['a', 'b'],
      queueName: 'q',
      catchUp: 'skip',
      callerIP: '127.0.0.1',
      callerIp: '127.0.0.1',
      isPaused: false,
      nextScheduleTime: Date.UTC(2026, 0, 1, 9), // 4 o'clock there
    });
  });

  it('keeps bytes that are no text', async () => {
    const id = await create(OK, {}, Buffer.from([0xff, 0x00]));
    expect(await shown(id)).toMatchObject({ bodyBase64: '/wA=' });
  });

  it('is made by a publish with a cron expression as well (contract M 4.2)', async () => {
    const publish = (to: string) =>
      world.ask({ method: 'POST', url: `/v2/publish/${to}`, headers: { 'upstash-cron': '@hourly' }, payload: 'x' });
    for (const to of [OK, 'nobody-yet']) {
      const { status, json } = await publish(to);
      expect([status, Object.keys(json)]).toEqual([200, ['scheduleId']]);
      expect(await shown(json.scheduleId)).toMatchObject({ destination: to, cron: '@hourly', body: 'x' });
    }
    expect(await world.countStored()).toBe(0);
  });

  it('is not made with a token that only publishes, on whichever path', async () => {
    const headers = { authorization: `Bearer ${PUBLISH_ONLY_TOKEN}`, 'upstash-cron': '@hourly' };
    for (const path of [`/v2/schedules/${OK}`, `/v2/publish/${OK}`, '/v2/publish/g']) {
      const refused = world.ask({ method: 'POST', url: path, headers });
      await expectRefused(refused, 403, 'publish-only token cannot perform this operation');
    }
  });
});

describe('what is refused', () => {
  const cron = { 'upstash-cron': '* * * * *' };
  it.each<[string, string, Record<string, string>, number, string | RegExp]>([
    ['no destination', '', cron, 400, 'a non-empty destination must be provided'],
    ['a wrong destination', 'ftp://x', cron, 400, /^invalid destination url/],
    ['a private address', 'http://127.0.0.1/', cron, 400, /loopback/],
    [
      'a private callback',
      OK,
      { ...cron, 'upstash-callback': 'http://127.0.0.1/' },
      400,
      /^invalid Upstash-Callback: .*loopback/,
    ],
    ['too many retries', OK, { ...cron, 'upstash-retries': '1000' }, 412, /^quota maxRetries/],
  ])('is %s', async (_what, destination, headers, status, error) => {
    await expectRefused(post(destination, headers), status, error);
  });

  it('is a body above the limit', async () => {
    await expectRefused(post(OK, cron, Buffer.alloc(LIMITS.messageBytesMax + 1)), 413, /^quota maxMessageSize/);
  });

  it('is an expression where no schedule can be made', async () => {
    const payload = JSON.stringify([{ destination: OK, headers: cron }]);
    const batch = world.ask({ method: 'POST', url: '/v2/batch', payload });
    await expectRefused(batch, 400, 'Upstash-Cron is not supported in a batch (item 0)');
    const defaults = { headers: { 'Waypost-Cron': '@daily' } };
    const group = world.ask({ method: 'PATCH', url: '/v2/topics/g', payload: defaults });
    await expectRefused(group, 400, 'Waypost-Cron is not supported as a default of a URL group');
  });
});

describe('pausing and resuming', () => {
  it('of a schedule that does not exist is 404', async () => {
    for (const word of ['pause', 'resume']) {
      const { status, json } = await world.ask({ method: 'PATCH', url: `/v2/schedules/none/${word}` });
      expect([status, json.error]).toEqual([404, 'schedule none not found']);
    }
  });
});

describe('a deleted schedule', () => {
  it('is gone, also when it never was, and its messages go on', async () => {
    const id = await create(SLOW, { 'upstash-delay': '1h' });
    await clock.advanceBy(10 * MINUTE_MS);
    const [message] = await lastMessages(id);
    for (let time = 0; time < 2; time += 1) {
      expect(await world.ask({ method: 'DELETE', url: `/v2/schedules/${id}` })).toMatchObject({
        status: 200,
        text: '',
      });
    }
    expect((await get(id)).status).toBe(404);
    await clock.advanceBy(30 * MINUTE_MS);
    const { json } = await world.ask({ url: `/v2/logs?scheduleId=${id}` });
    expect(json.logs.map(({ messageId, state }: Record<string, string>) => [messageId, state])).toEqual([
      [message.messageId, 'CREATED'],
    ]);
  });
});

describe('a schedule that is due', () => {
  it('makes a message with what it was created with, and shows how it ended', async () => {
    const headers = { 'upstash-label': 'report', 'upstash-retries': '0', 'content-type': 'text/plain' };
    const ids = await Promise.all([OK, SLOW, 'https://fail.example/'].map((to) => create(to, headers, 'hello')));
    const dueAtMs = clock.nowMs() + 10 * MINUTE_MS;
    await clock.advanceBy(10 * MINUTE_MS + 1_000);
    const states: string[] = [];
    for (const id of ids) {
      const view = await shown(id);
      expect(view).toMatchObject({ lastScheduleTime: dueAtMs, nextScheduleTime: dueAtMs + 10 * MINUTE_MS });
      states.push(...(Object.values(view.lastScheduleStates) as string[]));
    }
    expect(states).toEqual(['SUCCESS', 'IN_PROGRESS', 'FAIL']);
    expect(await lastMessages(ids[1] ?? '')).toMatchObject([
      {
        scheduleId: ids[1],
        url: SLOW,
        body: 'hello',
        header: { 'Content-Type': ['text/plain'] },
        labels: ['report'],
        maxRetries: 0,
        callerIP: '127.0.0.1',
        createdAt: dueAtMs,
      },
    ]);
  });

  it('makes its messages in the dialect it was created in', async () => {
    const id = await create(SLOW, { 'upstash-cron': '', 'waypost-cron': '*/10 * * * *' });
    await clock.advanceBy(10 * MINUTE_MS);
    const [{ messageId }] = await lastMessages(id);
    const message = await world.engine.findMessage(1, messageId);
    expect(message?.settings).toMatchObject({ dialect: 'waypost', scheduleId: id });
  });

  it('publishes to the URL group of that moment, with its default headers (contract M 15.3, 13.4)', async () => {
    const id = await create('g', { 'upstash-label': 'mine', 'x-event': 'push', cookie: 'c=1' }, 'hello');
    expect((await shown(id)).destination).toBe('g');
    await clock.advanceBy(10 * MINUTE_MS);
    expect(await shown(id)).toMatchObject({ error: 'topic g not found', lastScheduleStates: {} });
    const endpoints = [{ url: SLOW, name: 'one' }, { url: `${SLOW}/2` }];
    await world.ask({ method: 'POST', url: '/v2/topics/g/endpoints', payload: { endpoints } });
    const headers = { 'Upstash-Label': 'theirs', 'Upstash-Retries': '7', 'Upstash-Header-Forward': 'true' };
    await world.ask({ method: 'PATCH', url: '/v2/topics/g', payload: { headers } });
    await clock.advanceBy(10 * MINUTE_MS);
    expect(await shown(id)).not.toHaveProperty('error');
    const [first, second] = await lastMessages(id);
    expect(first).toMatchObject({
      url: SLOW,
      topicName: 'g',
      endpointName: 'one',
      scheduleId: id,
      label: 'mine',
      maxRetries: 7,
      header: { 'X-Event': ['push'], Cookie: ['c=1'] },
    });
    expect(first.header).not.toHaveProperty('Authorization');
    expect(second).toMatchObject({ url: `${SLOW}/2`, topicName: 'g', body: 'hello' });
  });

  it('enqueues to its queue, made when it is missing, and counts for its key (contract M 14, 16.4)', async () => {
    const headers = {
      'upstash-queue-name': 'q',
      'upstash-flow-control-key': 'k',
      'upstash-flow-control-value': 'parallelism=3, period=1m',
      'upstash-callback': 'https://ok.example/called',
    };
    const id = await create(SLOW, headers);
    expect(await shown(id)).toMatchObject({
      ...{ queueName: 'q', flowControlKey: 'k', parallelism: 3, period: 60 },
      callback: 'https://ok.example/called',
    });
    await clock.advanceBy(20 * MINUTE_MS);
    const messages = await lastMessages(id);
    expect(messages).toMatchObject([{ queueName: 'q', flowControlKey: 'k', parallelism: 3, scheduleId: id }]);
    expect(await world.engine.storeOf(1).queues.findQueue({ name: 'q' })).toMatchObject({ parallelism: 1, lag: 2 });
    expect(await world.engine.storeOf(1).keys.findKey({ key: 'k' })).toMatchObject({ parallelism: 3 });
  });
});
