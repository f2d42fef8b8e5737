import { expect, it } from 'vitest';
import type { LiveEntry, LogPosition } from '../../../src/engine/stores.ts';
import { startRun } from './run-world.ts';
import { eachWorld, lastFailure, type OpenStore, OTHER_PROJECT, PROJECT, T0 } from './world.ts';

const BEFORE_ALL: LogPosition = { timeMs: -1, n: -1 };

export function liveLogsConformance(open: OpenStore): void {
  const world = eachWorld(open);

  function after(place: LogPosition, { except = [] as number[], count = 100, toMs = T0 + 1_000 } = {}) {
    return world().store.logs.listLogsAfter({ projectId: PROJECT, after: place, toMs, except, count });
  }

  async function accept(count: number): Promise<LiveEntry[]> {
    for (let index = 0; index < count; index += 1) await world().accept({ createdAtMs: T0 + index });
    return after(BEFORE_ALL);
  }

  it('describes an entry, without bodies and headers', async () => {
    const { message, claimToken } = await world().acceptClaimed({
      body: new Uint8Array(10),
      header: { X: ['y'] },
      settings: {
        labels: ['a', 'b'],
        queueName: 'q',
        topicName: 't',
        scheduleId: 's',
        flowControl: { key: 'f', parallelism: 1, periodS: 1 },
      },
    });
    await world().settle(message, claimToken, lastFailure(T0 + 7), T0 + 7);
    const entries = await after(BEFORE_ALL);
    const about = { messageId: message.id, url: message.url, method: 'POST', queueName: 'q', topicName: 't' };
    const more = { scheduleId: 's', flowControlKey: 'f', labels: ['a', 'b'] };
    const at = { n: expect.any(Number), ...about, ...more };
    expect(entries).toEqual([
      { ...at, timeMs: T0, state: 'CREATED' },
      { ...at, timeMs: T0, state: 'ACTIVE' },
      { ...at, timeMs: T0 + 7, state: 'ERROR', error: 'status 500', responseStatus: 500 },
      { ...at, timeMs: T0 + 7, state: 'FAILED', error: 'status 500' },
    ]);
  });

  it('has the entries of runs and of their messages, with the id of the run', async () => {
    const first = await startRun(world(), { id: 'wfr_x' });
    const states = (await after(BEFORE_ALL)).map(({ state, runId, messageId }) => [state, runId, messageId]);
    expect(states.toSorted()).toEqual([
      ['CREATED', 'wfr_x', first.id],
      ['RUN_STARTED', 'wfr_x', first.id],
    ]);
  });

  it('starts after a position, ends with a time, and excludes known entries', async () => {
    const [a, b, c, d] = await accept(4);
    if (!a || !b || !c || !d) throw new Error('there are too few entries');
    expect(await after(a)).toEqual([b, c, d]);
    expect(await after(a, { except: [c.n] })).toEqual([b, d]);
    expect(await after(BEFORE_ALL, { except: [a.n], count: 2 })).toEqual([b, c]);
    expect(await after(BEFORE_ALL, { toMs: b.timeMs })).toEqual([a, b]);
  });

  it('returns the positions of the newest entries, and how many come after a position', async () => {
    const [a, b, c] = await accept(3);
    if (!a || !b || !c) throw new Error('there are too few entries');
    const newest = (count: number, toMs: number, place?: LogPosition) =>
      world().store.logs.newestLogs({ projectId: PROJECT, count, toMs, ...(place && { after: place }) });
    const places = [c, b, a].map(({ timeMs, n }) => ({ timeMs, n }));
    expect(await newest(2, T0 + 9)).toEqual({ positions: places.slice(0, 2), countAfter: 0 });
    expect(await newest(9, T0 + 9, a)).toEqual({ positions: places, countAfter: 2 });
    expect(await newest(9, b.timeMs, BEFORE_ALL)).toEqual({ positions: places.slice(1), countAfter: 2 });
  });

  it('keeps projects apart', async () => {
    await world().accept({ projectId: OTHER_PROJECT });
    expect(await after(BEFORE_ALL)).toEqual([]);
    const ours = { projectId: PROJECT, toMs: T0, count: 5, after: BEFORE_ALL };
    expect(await world().store.logs.newestLogs(ours)).toEqual({ positions: [], countAfter: 0 });
  });
}
