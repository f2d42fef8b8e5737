import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { endOfTurn, systemClock } from '../../src/system/system.ts';
import { eventually } from '../support/eventually.ts';
import { type Json, OTHER_TOKEN, openWorld, type Reply, type World } from './support/world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const logs = (query = ''): Promise<Reply> => world.ask({ method: 'GET', url: `/v2/logs${query}` });
const statesOf = ({ json }: Reply): string[] => json.logs.map(({ state }: Json) => state);

describe('the log list', () => {
  it('has logs and events on one path, events on the other, newest first', async () => {
    await world.bury('https://fail.example/x');
    const both = await logs();
    const events = await world.ask({ method: 'GET', url: '/v2/events' });
    expect(statesOf(both)).toEqual(['FAILED', 'ERROR', 'ACTIVE', 'CREATED']);
    expect(both.json.events).toEqual(both.json.logs);
    expect(events.json).toEqual({ events: both.json.logs });
  });

  it('ends a page at half as many bytes where each entry is in it twice', async () => {
    const store = world.engine.storeOf(1);
    const listLogs = vi.fn(store.logs.listLogs);
    vi.spyOn(world.engine, 'storeOf').mockReturnValue({ ...store, logs: { ...store.logs, listLogs } });
    await logs();
    await world.ask({ method: 'GET', url: '/v2/events' });
    const [twice = 0, once] = listLogs.mock.calls.map(([{ page }]) => page.bytesMax);
    expect(once).toBe(2 * twice);
  });

  it('is read for few requests of a project at a time, so that others have room for theirs', async () => {
    const { promise: goOn, resolve } = Promise.withResolvers<void>();
    const { storeOf } = world.engine;
    const begun: number[] = [];
    vi.spyOn(world.engine, 'storeOf').mockImplementation((projectId) => {
      const store = storeOf(projectId);
      const listLogs: typeof store.logs.listLogs = async (request) => {
        begun.push(projectId);
        await goOn;
        return store.logs.listLogs(request);
      };
      return { ...store, logs: { ...store.logs, listLogs } };
    });
    const many = Array.from({ length: 60 }, () => logs());
    await eventually('those that have room', () => begun.length === 9);
    const other = world.ask({ method: 'GET', url: '/v2/events', headers: { authorization: `Bearer ${OTHER_TOKEN}` } });
    await eventually('that of another project', () => begun.length === 10);
    expect(new Set(begun.slice(0, 9))).toEqual(new Set(begun.slice(0, 1)));
    resolve();
    for (const { status } of await Promise.all([...many, other])) expect(status).toBe(200);
  });

  it('gives way to others while it is written', async () => {
    let elapsedMs = 0;
    let turns = 0;
    const slow = await openWorld({
      clock: {
        nowMs: () => systemClock.nowMs(),
        wallMs: () => systemClock.wallMs(),
        leadMs: 0,
        // Whatever is done takes as long as a slice may.
        get elapsedMs() {
          elapsedMs += 5;
          return elapsedMs;
        },
        startTimer: (delayMs, task) => systemClock.startTimer(delayMs, task),
        onJump: (listener) => systemClock.onJump(listener),
      },
      endOfTurn: () => {
        turns += 1;
        return endOfTurn();
      },
    });
    for (let i = 0; i < 4; i += 1) await slow.publish('https://slow.example/', { 'upstash-delay': '1h' });
    turns = 0;
    const { json } = await slow.ask({ method: 'GET', url: '/v2/logs' });
    // One after the options of the request were looked at, and one after each entry.
    expect([json.logs.length, turns]).toEqual([4, 1 + 4]);
    await slow.close();
  });

  it('tells an error with its answer, under both names of the header map', async () => {
    await world.bury('https://fail.example/x');
    const { json } = await logs('?state=ERROR');
    expect(json.logs).toHaveLength(1);
    expect(json.logs[0]).toMatchObject({
      error: expect.any(String),
      responseStatus: 500,
      responseBody: Buffer.from('broken').toString('base64'),
      responseHeaders: { 'Content-Type': ['text/plain'] },
      responseHeader: { 'Content-Type': ['text/plain'] },
    });
  });

  it('carries the retry expression on every entry under both names', async () => {
    await world.bury('https://fail.example/x', { 'upstash-retry-delay': '1000' });
    for (const entry of (await logs()).json.logs) {
      expect(entry).toMatchObject({ retryDelayExpression: '1000', retryDelayExpr: '1000' });
    }
  });

  it('is followed by cursors, each entry once, without a cursor at the end', async () => {
    for (let i = 0; i < 3; i += 1) await world.publish('https://slow.example/', { 'upstash-delay': '1h' });
    const all = (await logs()).json.logs;
    const seen: Json[] = [];
    let query = '?count=2';
    for (;;) {
      const { json } = await logs(query);
      seen.push(...json.logs);
      if (json.cursor === undefined) break;
      query = `?count=2&cursor=${json.cursor}`;
    }
    expect(seen).toEqual(all);
    expect((await logs('?order=earliestFirst')).json.logs).toEqual(all.toReversed());
  });

  it('filters', async () => {
    const a = await world.publish('https://slow.example/a?x=1', { 'upstash-delay': '1h', 'upstash-label': 'a' });
    const b = await world.publish('https://slow.example:8443/b', { 'upstash-delay': '1h', 'upstash-label': 'b,c' });
    await world.bury('https://fail.example/x');
    const found = async (query: string): Promise<string[]> =>
      (await logs(query)).json.logs.map(({ messageId }: Json) => messageId);
    expect(await found(`?messageId=${a}`)).toEqual([a]);
    expect(await found(`?messageIds=${a},${b},msg_nope`)).toEqual([b, a]);
    expect(await found('?label=a&label=c')).toEqual([b, a]);
    expect(await found('?label=a,c&host=slow.example')).toEqual([a]);
    expect(await found('?host=SLOW.example:8443&path=/b')).toEqual([b]);
    expect(await found(`?url=${encodeURIComponent('https://slow.example/a?x=1')}`)).toEqual([a]);
    const { time } = (await logs(`?messageId=${b}`)).json.logs[0];
    expect(await found(`?fromDate=${time}&toDate=${time}&label=b`)).toEqual([b]);
    expect(statesOf(await logs('?state=IN_PROGRESS'))).toEqual(['ERROR', 'ACTIVE']);
    expect(statesOf(await logs('?state=CANCELLED,FAILED'))).toEqual(['FAILED']);
  });

  it('ignores parameters that it does not know', async () => {
    await world.publish('https://slow.example/', { 'upstash-delay': '1h' });
    expect((await logs('?trimBody=1&groupBy=x&lable=a&dlqIds=1&responseStatus=x')).json.logs).toHaveLength(1);
  });

  it.each(['?count=0', '?count=1e3', '?state=DONE', '?toDate=-1', '?messageId=a,b', '?cursor=what'])(
    'refuses %s',
    async (query) => {
      expect((await logs(query)).status).toBe(400);
    },
  );

  it('lowers a count above 1,000 and pages by the configured default', async () => {
    await world.close();
    world = await openWorld({ logsPageDefault: 2 });
    for (let i = 0; i < 3; i += 1) await world.publish('https://slow.example/', { 'upstash-delay': '1h' });
    expect((await logs()).json.logs).toHaveLength(2);
    expect((await logs('?count=5000')).json.logs).toHaveLength(3);
  });
});
