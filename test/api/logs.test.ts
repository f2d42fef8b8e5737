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

  it('lowers a count above 1,000 and pages by the configured default', async () => {
    await world.close();
    world = await openWorld({ logsPageDefault: 2 });
    for (let i = 0; i < 3; i += 1) await world.publish('https://slow.example/', { 'upstash-delay': '1h' });
    expect((await logs()).json.logs).toHaveLength(2);
    expect((await logs('?count=5000')).json.logs).toHaveLength(3);
  });
});
