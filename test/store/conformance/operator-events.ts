import { expect, it } from 'vitest';
import type { OperatorEventKind } from '../../../src/engine/operator-events/kinds.ts';
import type { OperatorFact, Tally } from '../../../src/engine/operator-events/model.ts';
import { eachWorld, lastFailure, type OpenStore, OTHER_PROJECT, PROJECT, settlement, T0 } from './world.ts';

const QUIET_MS = 60_000;
const OPERATOR = PROJECT;

export function operatorEventsConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const events = () => world().store.operatorEvents;

  const fact = (atMs: number, changes: Partial<OperatorFact> = {}): OperatorFact => {
    const key = world().number();
    return { key, kind: 'message_buried', projectId: PROJECT, atMs, example: `example ${atMs - T0}`, ...changes };
  };
  const note = (...facts: OperatorFact[]) => events().noteFacts({ facts });
  const gather = (nowMs = T0, factsMax = 100) => {
    const thresholds = { message_buried: 1, run_failed: 1, schedule_missed: 1, worker_lost: 1, origin_held: 2 };
    return events().gatherFacts({ nowMs, thresholds, quietMs: QUIET_MS, factsMax });
  };
  const tell = (tally: Tally, nowMs = T0) => {
    const message = world().message({ settings: { isOperatorEvent: true } });
    return events().reportTally({ projectId: OPERATOR, tally, message, quietUntilMs: nowMs + QUIET_MS, nowMs });
  };
  const toldOnce = async (nowMs = T0): Promise<Tally> => {
    const { due } = await gather(nowMs);
    expect(due).toHaveLength(1);
    return due[0] as Tally;
  };

  it('counts facts by kind and project, with the first, the times and an example, each once', async () => {
    await note(fact(T0 + 1), fact(T0), fact(T0 + 5, { kind: 'run_failed', projectId: OTHER_PROJECT }));
    await note(fact(T0 + 9));
    const { hasMore, due } = await gather(T0 + 10);
    expect(hasMore).toBe(false);
    const about = { quietUntilMs: 0, dueAtMs: T0 + 10 };
    expect(due.toSorted((a, b) => b.count - a.count)).toEqual([
      {
        ...{ kind: 'message_buried', projectId: PROJECT, count: 3, example: 'example 0' },
        ...{ firstAtMs: T0, lastAtMs: T0 + 9, ...about },
      },
      {
        ...{ kind: 'run_failed', projectId: OTHER_PROJECT, count: 1, example: 'example 5' },
        ...{ firstAtMs: T0 + 5, lastAtMs: T0 + 5, ...about },
      },
    ]);
    expect(await gather(T0 + 10)).toEqual({ hasMore: false, due, nextAtMs: T0 + 10 });
  });

  it('uses the earliest fact as the example, whichever was counted first', async () => {
    await note(fact(T0 + 5));
    await gather(T0 + 5);
    await note(fact(T0 + 9), fact(T0 + 2));
    expect(await toldOnce(T0 + 9)).toMatchObject({
      count: 3,
      example: 'example 2',
      firstAtMs: T0 + 2,
      lastAtMs: T0 + 9,
    });
  });

  it('counts them in batches', async () => {
    await note(...[0, 1, 2].map((index) => fact(T0 + index)));
    expect(await gather(T0, 2)).toMatchObject({ hasMore: true });
    expect(await gather(T0, 2)).toMatchObject({ hasMore: false, due: [{ count: 3 }] });
  });

  it('returns no due tallies below the threshold, and the time of those that are due after a quiet period', async () => {
    await note(fact(T0, { kind: 'origin_held' }));
    expect(await gather()).toEqual({ hasMore: false, due: [], nextAtMs: undefined });
    await note(fact(T0));
    await tell(await toldOnce());
    await note(fact(T0 + 1));
    expect(await gather(T0 + 1)).toEqual({ hasMore: false, due: [], nextAtMs: T0 + QUIET_MS });
    expect(await toldOnce(T0 + QUIET_MS)).toMatchObject({
      count: 1,
      publishedExample: 'example 0',
      example: 'example 1',
    });
  });

  it('saves the message that reports a tally, marked, and resets the tally', async () => {
    await note(fact(T0));
    expect(await tell(await toldOnce())).toEqual({ state: 'due' });
    const { claimed } = await world().claim();
    expect(claimed.map(({ message }) => message.settings.isOperatorEvent)).toEqual([true]);
    expect(await gather(T0 + 2 * QUIET_MS)).toEqual({ hasMore: false, due: [], nextAtMs: undefined });
  });

  it('lets one of several workers report, and none that has an older tally', async () => {
    await note(fact(T0));
    const early = await toldOnce();
    await note(fact(T0 + 1));
    const tally = await toldOnce();
    expect(await tell(early)).toBe('stale');
    const told = await Promise.all([tell(tally), tell(tally), tell(tally)]);
    expect(told.filter((result) => result !== 'stale')).toEqual([{ state: 'due' }]);
    expect((await world().claim({ limit: 10 })).claimed).toHaveLength(1);
  });

  it('resets the tally when its message is saved in another cell, unless more facts were counted since', async () => {
    await note(fact(T0));
    const early = await toldOnce();
    await note(fact(T0 + 1));
    const tally = await toldOnce();
    await events().noteReported({ tally: early, quietUntilMs: T0 + QUIET_MS });
    expect(await toldOnce()).toEqual(tally);
    await events().noteReported({ tally, quietUntilMs: T0 + QUIET_MS });
    expect(await gather(T0 + 2 * QUIET_MS)).toEqual({ hasMore: false, due: [], nextAtMs: undefined });
    await note(fact(T0 + 2));
    expect(await gather(T0 + 2)).toMatchObject({ due: [], nextAtMs: T0 + QUIET_MS });
  });

  it('loses no facts that are saved and counted at the same time', async () => {
    const noted = Array.from({ length: 20 }, (_, index) => note(fact(T0 + index)));
    await Promise.all([...noted, ...Array.from({ length: 5 }, () => gather(T0, 3))]);
    while ((await gather()).hasMore);
    expect(await toldOnce()).toMatchObject({ count: 20 });
  });

  it.each<OperatorEventKind>(['message_buried', 'run_failed'])(
    'saves a fact with the dead letter: %s',
    async (operatorEventKind) => {
      const [kept, stale, silent] = await Promise.all([1, 2, 3].map(() => world().acceptClaimed()));
      if (!kept || !stale || !silent) throw new Error('three were accepted');
      const settle = ({ message, claimToken }: typeof kept, token = claimToken, told = {}) =>
        world().settle(message, token, { ...lastFailure(T0 + 7), ...told }, T0 + 7);
      await settle(kept, kept.claimToken, { operatorEventKind });
      await settle(stale, stale.claimToken + 1_000, { operatorEventKind });
      await settle(silent);
      const example = `${T0 + 7}-${kept.message.key}`;
      expect(await toldOnce()).toMatchObject({
        kind: operatorEventKind,
        projectId: PROJECT,
        count: 1,
        firstAtMs: T0 + 7,
        example,
      });
    },
  );

  it('saves no fact with a change that a cancel has replaced', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    await world().store.messages.cancelById({ projectId: PROJECT, ids: [message.id], nowMs: T0 });
    const change = { ...lastFailure(T0), operatorEventKind: 'message_buried' as const };
    const changeIfCancelRequested = {
      next: { kind: 'finished' as const },
      events: [{ atMs: T0, state: 'CANCELED' as const }],
    };
    await world().store.messages.settle({
      settlement: { ...settlement(message, claimToken, change), changeIfCancelRequested },
      nowMs: T0,
    });
    expect(await gather()).toMatchObject({ due: [] });
  });

  it('saves a fact with the change of a schedule, unless the change is stale', async () => {
    const { settings } = world().message().message;
    const state = { version: 1, isPaused: false, nextAtMs: T0 };
    const plan = {
      ...{ cron: '* * * * *', destination: { kind: 'url' as const, url: 'https://example.com/' }, settings },
      ...{ method: 'POST' as const, header: {}, body: new Uint8Array() },
    };
    const schedule = { key: world().number(), projectId: PROJECT, id: 's', createdAtMs: T0, plan, state };
    await world().store.schedules.saveSchedule({ schedule, fromVersion: undefined, schedulesMax: 0 });
    const missed = () => fact(T0, { kind: 'schedule_missed', example: 's' });
    const next = { key: schedule.key, state: { ...state, version: 2 }, messages: [] };
    await world().store.schedules.changeSchedules({
      changes: [{ ...next, fromVersion: 9, fact: missed() }],
      nowMs: T0,
    });
    expect(await gather()).toMatchObject({ due: [] });
    await world().store.schedules.changeSchedules({
      changes: [{ ...next, fromVersion: 1, fact: missed() }],
      nowMs: T0,
    });
    expect(await toldOnce()).toMatchObject({ kind: 'schedule_missed', example: 's', count: 1 });
  });

  it('saves a fact about a worker that was late, not about one that has left', async () => {
    const { workers } = world().store;
    const beat = (worker: string) =>
      workers.heartbeat({ worker, timeoutMs: 1_000, isLeaving: false, accountsVersion: 1 });
    for (const worker of ['late', 'left']) await beat(worker);
    await workers.leave({ worker: 'left' });
    const { wallMs } = await beat('witness');
    expect((await workers.expireWorkers({ nowMs: wallMs + 60_000, isReported: true })).toSorted()).toEqual([
      'late',
      'left',
      'witness',
    ]);
    const { due } = await gather();
    expect(due).toMatchObject([{ kind: 'worker_lost', projectId: 0, count: 2 }]);
    expect(['late', 'witness']).toContain(due[0]?.example);
  });
}
