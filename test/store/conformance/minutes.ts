import { expect, it } from 'vitest';
import { emptyMinute, type Minute } from '../../../src/engine/minutes/counts.ts';
import { eachWorld, type OpenStore, OTHER_PROJECT, PROJECT, T0 } from './world.ts';

const MINUTE = 60_000;

/** The `index`th minute, with a different number in each count, `factor` times. */
function counted(index: number, factor = 1): Minute {
  const minute = emptyMinute(T0 + index * MINUTE);
  return {
    atMs: minute.atMs,
    accepted: factor * 1,
    delivered: factor * 2,
    failedAttempts: factor * 3,
    dead: factor * 4,
    runsStarted: factor * 5,
    runsSucceeded: factor * 6,
    runsFailed: factor * 7,
    runsCanceled: factor * 8,
    latency: minute.latency.map((_, bucket) => factor * (10 + bucket)),
    lag: minute.lag.map((_, bucket) => factor * (30 + bucket)),
  };
}

export function minutesConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const add = (minutes: Minute[], projectId = PROJECT) => world().store.minutes.addMinutes({ projectId, minutes });
  const list = (projectId = PROJECT, bounds: { fromMs?: number; toMs?: number; count?: number } = {}) =>
    world().store.minutes.listMinutes({ projectId, fromMs: 0, toMs: T0 + 1e9, count: 1_000, ...bounds });

  it('adds each count to the saved count of its minute', async () => {
    await add([counted(0), counted(1)]);
    await add([counted(1, 1_000), counted(2)]);
    expect(await list()).toEqual([counted(0), counted(1, 1_001), counted(2)]);
  });

  it('adds a minute that is given twice in one command', async () => {
    await add([counted(0), counted(0, 10)]);
    expect(await list()).toEqual([counted(0, 11)]);
  });

  it('loses no counts that several workers add to one minute at the same time', async () => {
    await Promise.all(Array.from({ length: 20 }, () => add([counted(0), counted(1)])));
    expect(await list()).toEqual([counted(0, 20), counted(1, 20)]);
  });

  it('keeps projects apart', async () => {
    await add([counted(0)]);
    await add([counted(0, 2), counted(1)], OTHER_PROJECT);
    expect(await list()).toEqual([counted(0)]);
    expect(await list(OTHER_PROJECT)).toEqual([counted(0, 2), counted(1)]);
  });

  it('lists the first minutes that begin within the bounds, oldest first', async () => {
    await add([3, 1, 0, 2].map((index) => counted(index)));
    const bounds = { fromMs: T0 + MINUTE, toMs: T0 + 3 * MINUTE };
    expect(await list(PROJECT, bounds)).toEqual([counted(1), counted(2), counted(3)]);
    expect(await list(PROJECT, { ...bounds, toMs: bounds.toMs - 1 })).toEqual([counted(1), counted(2)]);
    expect(await list(PROJECT, { ...bounds, count: 1 })).toEqual([counted(1)]);
  });

  it('drops minutes that began before the limit, of every project, in chunks', async () => {
    for (const projectId of [PROJECT, OTHER_PROJECT])
      await add(
        [0, 1, 2, 3].map((index) => counted(index)),
        projectId,
      );
    const limits = { logsBeforeMs: 0, deadBeforeMs: 0, keysUsedBeforeMs: 0, nowMs: T0, rowsMax: 4 };
    const drop = () => world().store.retention.dropExpired({ ...limits, minutesBeforeMs: T0 + 3 * MINUTE });
    expect(await drop()).toBe(true);
    expect((await list()).length + (await list(OTHER_PROJECT)).length).toBe(4);
    expect(await drop()).toBe(false);
    for (const projectId of [PROJECT, OTHER_PROJECT]) expect(await list(projectId)).toEqual([counted(3)]);
  });
}
