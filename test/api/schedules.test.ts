/** Schedules over HTTP (contract M 15, 22.13, 22.17). */
import { Value } from '@sinclair/typebox/value';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ScheduleListSchema, ScheduleSchema } from '../../src/api/schemas.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import {
  LIMITS,
  OTHER_TOKEN,
  openWorld,
  PUBLISH_ONLY_TOKEN,
  READ_ONLY_TOKEN,
  type Reply,
  type World,
} from './support/world.ts';

const OK = 'https://ok.example/hook';
const SLOW = 'https://slow.example/hook';
const MINUTE_MS = 60_000;
const OTHER = { headers: { authorization: `Bearer ${OTHER_TOKEN}` } };

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

/** Creates a schedule for every ten minutes, unless `headers` say otherwise, and answers its id. */
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

  it('may be configured by the query, like a publish', async () => {
    const { json } = await post(`${OK}?a=b&upstash-cron=0%200%20*%20*%20*&Upstash-Retries=2&c=d`);
    expect(await shown(json.scheduleId)).toMatchObject({ destination: `${OK}?a=b&c=d`, cron: '0 0 * * *', retries: 2 });
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

  it('hides what is redacted, and delivers it', async () => {
    const id = await create(OK, { 'upstash-redact-fields': 'body, header', 'upstash-forward-x': 'secret' }, 'secret');
    const hash = '2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b';
    expect(await shown(id)).toMatchObject({ body: `REDACTED:${hash}`, header: { X: [`REDACTED:${hash}`] } });
    await clock.advanceBy(10 * MINUTE_MS);
    expect(await lastMessages(id)).toMatchObject([{ body: `REDACTED:${hash}` }]);
  });

  it('is found by paths in any case, and only in its own project', async () => {
    await create(OK, { 'upstash-schedule-id': 'S.1' });
    expect((await world.ask({ url: '/v2/Schedules/S.1' })).status).toBe(200);
    expect((await get('s.1')).json.error).toBe('schedule s.1 not found');
    const foreign = (method: 'GET' | 'DELETE' | 'PATCH', url: string) => world.ask({ method, url, ...OTHER });
    expect((await foreign('GET', '/v2/schedules')).json).toEqual([]);
    expect((await foreign('GET', '/v2/schedules/S.1')).status).toBe(404);
    expect((await foreign('PATCH', '/v2/schedules/S.1/pause')).status).toBe(404);
    expect((await foreign('DELETE', '/v2/schedules/S.1')).status).toBe(200);
    expect((await shown('S.1')).isPaused).toBe(false);
    const readOnly = { headers: { authorization: `Bearer ${READ_ONLY_TOKEN}` } };
    expect((await world.ask({ url: '/v2/schedules/S.1', ...readOnly })).status).toBe(200);
    expect((await world.ask({ method: 'DELETE', url: '/v2/schedules/S.1', ...readOnly })).status).toBe(403);
  });

  it('is listed in the order of creation', async () => {
    for (const id of ['c', 'a', 'b']) {
      await create(OK, { 'upstash-schedule-id': id });
      await clock.advanceBy(1);
    }
    const { json } = await list();
    expect(json.map(({ scheduleId }: { scheduleId: string }) => scheduleId)).toEqual(['c', 'a', 'b']);
    expect([...Value.Errors(ScheduleListSchema, json)]).toEqual([]);
    expect(json[1]).toEqual(await shown('a'));
  });
});

describe('what is refused', () => {
  const cron = { 'upstash-cron': '* * * * *' };
  it.each<[string, string, Record<string, string>, number, string | RegExp]>([
    ['a missing expression', OK, {}, 400, 'Invalid cron expression empty spec string'],
    ['an empty one', OK, { 'upstash-cron': ' ' }, 400, 'Invalid cron expression empty spec string'],
    ['a wrong one', OK, { 'upstash-cron': '* * * * 7' }, 400, /^Invalid cron expression end of range \(7\)/],
    ['an unknown zone', OK, { 'upstash-cron': 'CRON_TZ=X/Y * * * * *' }, 400, /^Invalid cron expression .*X\/Y/],
    ['one that never comes', OK, { 'upstash-cron': '0 0 30 2 *' }, 400, /never comes/],
    ['no destination', '', cron, 400, 'a non-empty destination must be provided'],
    ['a wrong destination', 'ftp://x', cron, 400, /^invalid destination url/],
    ['a private address', 'http://127.0.0.1/', cron, 400, /loopback/],
    ['a wrong id', OK, { ...cron, 'upstash-schedule-id': 'a/b' }, 400, /^invalid schedule id a\/b/],
    [
      'a private callback',
      OK,
      { ...cron, 'upstash-callback': 'http://127.0.0.1/' },
      400,
      /^invalid Upstash-Callback: .*loopback/,
    ],
    ['a wrong queue', OK, { ...cron, 'upstash-queue-name': 'a b' }, 400, /^invalid queue name a b/],
    ['a time', OK, { ...cron, 'upstash-not-before': '1' }, 400, 'Upstash-Not-Before is not supported for schedules'],
    ['a wrong policy', OK, { ...cron, 'waypost-schedule-overlap': 'x' }, 400, /^invalid Waypost-Schedule-Overlap/],
    ['too many retries', OK, { ...cron, 'upstash-retries': '1000' }, 412, /^quota maxRetries/],
    ['too long a delay', OK, { ...cron, 'upstash-delay': '400d' }, 412, /^quota maxDelay/],
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

describe('overwriting', () => {
  it('replaces everything, the body included, and keeps one schedule', async () => {
    const id = await create(OK, { 'upstash-delay': '5s', 'upstash-label': 'x', 'content-type': 'text/plain' }, 'body');
    const before = await shown(id);
    await clock.advanceBy(MINUTE_MS);
    expect(await create(SLOW, { 'upstash-schedule-id': id, 'upstash-cron': '@hourly' })).toBe(id);
    expect(await shown(id)).toEqual({
      scheduleId: id,
      cron: '@hourly',
      createdAt: before.createdAt,
      destination: SLOW,
      method: 'POST',
      retries: 3,
      isPaused: false,
      callerIP: '127.0.0.1',
      callerIp: '127.0.0.1',
      nextScheduleTime: before.createdAt + 60 * MINUTE_MS,
    });
    expect((await list()).json).toHaveLength(1);
  });

  it('keeps the pause', async () => {
    const id = await create(OK);
    await world.ask({ method: 'PATCH', url: `/v2/schedules/${id}/pause` });
    await create(OK, { 'upstash-schedule-id': id });
    expect((await shown(id)).isPaused).toBe(true);
  });
});

describe('pausing and resuming', () => {
  it.each(['PATCH', 'POST'] as const)('works with %s and may be repeated', async (method) => {
    const id = await create(OK);
    const { nextScheduleTime } = await shown(id);
    const ask = (word: string) => world.ask({ method, url: `/v2/schedules/${id}/${word}` });
    for (const [word, isPaused] of [
      ['pause', true],
      ['resume', false],
    ] as const) {
      for (let time = 0; time < 2; time += 1) {
        expect(await ask(word)).toMatchObject({ status: 200, text: '' });
        expect((await shown(id)).isPaused).toBe(isPaused);
      }
      if (isPaused) await clock.advanceBy(25 * MINUTE_MS);
      expect((await shown(id)).nextScheduleTime).toBe(nextScheduleTime + (isPaused ? 0 : 20 * MINUTE_MS));
    }
    expect(await world.countStored()).toBe(0);
  });

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

  it('never makes fewer messages for deduplication headers (contract M 11.8)', async () => {
    const id = await create(OK, { 'upstash-deduplication-id': 'a:b', 'upstash-content-based-deduplication': 'maybe' });
    await clock.advanceBy(10 * MINUTE_MS);
    const [first] = Object.keys((await shown(id)).lastScheduleStates);
    await clock.advanceBy(10 * MINUTE_MS);
    const [second] = Object.keys((await shown(id)).lastScheduleStates);
    expect(first).not.toBe(second);
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

  it('can be found by its messages in logs and bulk actions', async () => {
    const id = await create(SLOW);
    await create(SLOW);
    await clock.advanceBy(10 * MINUTE_MS);
    const [messageId] = Object.keys((await shown(id)).lastScheduleStates);
    const { json } = await world.ask({ url: `/v2/logs?scheduleId=${id}&state=ACTIVE` });
    expect(json.logs).toMatchObject([{ messageId, scheduleId: id }]);
    const cancelled = await world.ask({ method: 'DELETE', url: `/v2/messages?scheduleId=${id}` });
    expect(cancelled.json).toEqual({ cancelled: 1 });
  });
});
