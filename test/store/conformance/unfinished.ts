import { expect, it } from 'vitest';
import type { UnfinishedFilter } from '../../../src/engine/lists/unfinished.ts';
import { startRun } from './run-world.ts';
import { bytes, eachWorld, lastFailure, type OpenStore, OTHER_PROJECT, PROJECT, retrying, T0, World } from './world.ts';

export function unfinishedConformance(open: OpenStore): void {
  const world = eachWorld(open);

  const list = (filter: UnfinishedFilter = {}, page: { count?: number; cursor?: string } = {}, nowMs = T0) =>
    world().store.messages.listUnfinished({ projectId: PROJECT, filter, page: { count: 100, ...page }, nowMs });
  const idsOf = async (filter: UnfinishedFilter, nowMs = T0) =>
    (await list(filter, {}, nowMs)).items.map(({ message }) => message.id);
  const backlog = (nowMs = T0) => world().store.backlog.readBacklog({ projectId: PROJECT, nowMs });
  const failures = () => world().store.backlog.readFailures({ projectId: PROJECT });

  const paused = { projectId: PROJECT, isPaused: true, nowMs: T0 };
  const queued = (queueName: string) => world().accept({ settings: { queueName } });
  const keyed = (key: string, notBeforeMs = T0) =>
    world().accept({ notBeforeMs, settings: { flowControl: { key, periodS: 1, parallelism: 1 } } });

  it('lists messages newest first without their bodies, and returns the sizes of these', async () => {
    const first = await world().accept({ body: bytes('four') });
    const second = await world().accept({ header: { A: ['b'] }, callerIp: '10.0.0.1' });
    const { items, cursor } = await list();
    expect(items).toEqual([
      expect.objectContaining({ message: second, bodyBytes: 0, retried: 0 }),
      expect.objectContaining({ message: { ...first, body: bytes('') }, bodyBytes: 4 }),
    ]);
    expect(cursor).toBeUndefined();
  });

  it('returns what each message waits for', async () => {
    const delayed = await world().accept({ notBeforeMs: T0 + 9 });
    const inBacklog = await world().accept({ state: { kind: 'origin', dueAtMs: T0 } });
    const { message: running } = await world().acceptClaimed();
    await world().store.messages.cancelById({ projectId: PROJECT, ids: [running.id], nowMs: T0 });
    await world().store.queues.saveQueue({ ...paused, name: 'q', parallelism: 2 });
    const inQueue = await queued('q');
    await world().store.keys.setKeyPaused({ ...paused, key: 'k' });
    const withKey = await keyed('k');
    const later = await keyed('k', T0 + 9);
    const { items } = await list();
    const listed = items.map(({ message, unfinishedState, state, cancelRequested }) => [
      message.id,
      unfinishedState,
      cancelRequested,
      state,
    ]);
    expect(listed).toEqual([
      [
        later.id,
        'waiting',
        false,
        { kind: 'flow', dueAtMs: T0 + 9, key: expect.objectContaining({ key: 'k', isPaused: true }) },
      ],
      [
        withKey.id,
        'held',
        false,
        { kind: 'flow', dueAtMs: T0, key: expect.objectContaining({ key: 'k', isPaused: true, inFlight: 0 }) },
      ],
      [inQueue.id, 'held', false, { kind: 'queue', dueAtMs: T0, isPaused: true, hasPermit: false, parallelism: 2 }],
      [running.id, 'active', true, { kind: 'claimed', claimedAtMs: T0 }],
      [inBacklog.id, 'held', false, { kind: 'origin', dueAtMs: T0 }],
      [delayed.id, 'waiting', false, { kind: 'due', dueAtMs: T0 + 9 }],
    ]);
    expect(await idsOf({ unfinishedState: ['held'] })).toEqual([withKey.id, inQueue.id, inBacklog.id]);
    expect(await idsOf({ unfinishedState: ['active'] })).toEqual([running.id]);
    expect(await idsOf({ unfinishedState: ['waiting', 'active'] })).toEqual([later.id, running.id, delayed.id]);
    expect(await idsOf({ unfinishedState: ['held'] }, T0 + 9)).toContain(later.id);
  });

  it('excludes finished messages, messages of runs, and those of other projects', async () => {
    await world().acceptDead(T0);
    await startRun(world(), { id: 'run' });
    await world().accept({ projectId: OTHER_PROJECT });
    await world().acceptClaimed({ projectId: OTHER_PROJECT });
    const { message, claimToken } = await world().acceptClaimed();
    await world().settle(message, claimToken, retrying(T0, T0 + 9, 2));
    const { items } = await list();
    expect(items.map((item) => [item.message.id, item.retried])).toEqual([[message.id, 2]]);
    expect(await idsOf({ unfinishedState: ['active'] })).toEqual([]);
  });

  it('filters by attributes, times and ids', async () => {
    const one = await world().accept({ settings: { labels: ['a'] }, url: 'https://one.example/p' });
    const two = await world().accept({ createdAtMs: T0 + 10, settings: { labels: ['b'] } });
    expect(await idsOf({ label: ['a'] })).toEqual([one.id]);
    expect(await idsOf({ label: ['a', 'b'], host: ['one.example'] })).toEqual([one.id]);
    expect(await idsOf({ fromMs: T0 + 10 })).toEqual([two.id]);
    expect(await idsOf({ toMs: T0 + 9 })).toEqual([one.id]);
    expect(await idsOf({ messageId: [one.id, two.id, 'msg_no'] })).toEqual([two.id, one.id]);
    expect(await idsOf({ messageId: [] })).toEqual([]);
    expect(await idsOf({ label: ['a'], unfinishedState: ['active'] })).toEqual([]);
  });

  it.each<[string, UnfinishedFilter]>([
    ['all', {}],
    ['of those in flight', { unfinishedState: ['active'] }],
  ])('returns pages that contain each message once: %s', async (_, filter) => {
    const ids: string[] = [];
    for (let count = 0; count < 5; count += 1) ids.unshift((await world().acceptClaimed()).message.id);
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await list(filter, cursor === undefined ? { count: 2 } : { count: 2, cursor });
      seen.push(...page.items.map(({ message }) => message.id));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(seen).toEqual(ids);
  });

  it('finds messages behind many messages of other projects', async () => {
    const { id } = await world().accept();
    const others = Array.from({ length: 1_100 }, () => world().message({ projectId: OTHER_PROJECT }));
    await world().save(others);
    expect(await idsOf({})).toEqual([id]);
    expect(await idsOf({ messageId: [id] })).toEqual([id]);
  });

  it('counts unfinished messages, including those of runs', async () => {
    await world().accept({ notBeforeMs: T0 + 9 });
    await startRun(world(), { id: 'run' });
    await world().acceptClaimed();
    await world().accept({ state: { kind: 'origin', dueAtMs: T0 - 5 }, url: 'https://b.example/' });
    await world().accept({ state: { kind: 'origin', dueAtMs: T0 - 7 }, url: 'https://b.example/' });
    await world().accept({ state: { kind: 'origin', dueAtMs: T0 - 3 }, url: 'https://a.example/' });
    await world().accept({ projectId: OTHER_PROJECT, state: { kind: 'origin', dueAtMs: 1 } });
    await world().accept({ projectId: OTHER_PROJECT, notBeforeMs: 1 });
    const exactly = (count: number) => ({ count, isAtLeast: false });
    expect(await backlog()).toEqual({
      active: 1,
      waiting: exactly(2),
      held: exactly(3),
      oldestDueAtMs: T0 - 7,
      origins: [
        { origin: 'https://a.example', waiting: exactly(1), firstDueAtMs: T0 - 3 },
        { origin: 'https://b.example', waiting: exactly(2), firstDueAtMs: T0 - 7 },
      ],
      queues: [],
      keys: [],
      isPartial: false,
    });
  });

  it('has no oldest due message when none is due', async () => {
    await world().accept({ notBeforeMs: T0 + 9 });
    expect(await backlog()).not.toHaveProperty('oldestDueAtMs');
    expect(await backlog(T0 + 9)).toMatchObject({ oldestDueAtMs: T0 + 9 });
  });

  it('lists queues and keys with messages; for a key it counts the due ones', async () => {
    await world().store.queues.saveQueue({ ...paused, name: 'q', parallelism: 2 });
    for (let count = 0; count < 3; count += 1) await queued('q');
    await world().store.keys.setKeyPaused({ ...paused, key: 'k' });
    await keyed('k', T0 + 9);
    await keyed('k', T0 - 2);
    const { queues, keys, held, waiting, oldestDueAtMs } = await backlog();
    expect(queues).toEqual([
      { queueName: 'q', isPaused: true, parallelism: 2, waiting: { count: 3, isAtLeast: false }, firstDueAtMs: T0 },
    ]);
    expect(keys).toEqual([
      {
        key: expect.objectContaining({ key: 'k', isPaused: true }),
        ...{ waiting: { count: 1, isAtLeast: false }, firstDueAtMs: T0 - 2 },
      },
    ]);
    expect([held.count, waiting.count, oldestDueAtMs]).toEqual([4, 1, T0 - 2]);
  });

  it('counts messages of a wait list, and lists wait lists, up to a limit', async () => {
    const line = (index: number, url: string) =>
      world().message({ url, state: { kind: 'origin', dueAtMs: T0 + index } });
    const ofOne = Array.from({ length: 502 }, (_, index) => line(index, 'https://0.example/'));
    const ofMany = Array.from({ length: 20 }, (_, index) => line(0, `https://${index + 100}.example/`));
    await world().save([...ofOne, ...ofMany]);
    const { origins, held, isPartial } = await backlog();
    expect(origins[0]).toMatchObject({ origin: 'https://0.example', waiting: { count: 500, isAtLeast: true } });
    expect([origins.length, isPartial]).toEqual([20, true]);
    expect(held).toEqual({ count: 522, isAtLeast: false });
  });

  it('reports that a project is at its limit of attempts in flight', async () => {
    const store = await open({ queuesMax: 0, parallelismMax: 1, messagesPerDayMax: 0, journalBytesMax: 0 });
    const limited = await World.open(async () => store);
    await limited.acceptClaimed();
    const { message: held } = await limited.acceptClaimed();
    const { project } = await store.backlog.readBacklog({ projectId: PROJECT, nowMs: T0 });
    expect(project).toEqual({ waiting: { count: 1, isAtLeast: false }, firstDueAtMs: held.notBeforeMs });
    await store.close();
  });

  it('counts unfinished messages of all projects by wait state, and returns how long the oldest has been due', async () => {
    const totals = (nowMs = T0) => world().store.backlog.readTotals({ nowMs });
    const none = { due: 0, scheduled: 0, origin: 0, project: 0, flow: 0, queue: 0, active: 0 };
    const { storage, ...empty } = await totals();
    expect(empty).toEqual({ ...none, oldestDueMs: 0, dead: 0, runs: 0, waiters: 0 });
    expect(storage.bytes).toBeGreaterThan(storage.unusedBytes ?? 0);
    await world().accept({ notBeforeMs: T0 + 9 });
    await world().accept({ projectId: OTHER_PROJECT, state: { kind: 'origin', dueAtMs: T0 - 5 } });
    await world().acceptClaimed();
    await world().store.queues.saveQueue({ ...paused, name: 'q', parallelism: 2 });
    await queued('q');
    await world().store.keys.setKeyPaused({ ...paused, key: 'k' });
    await keyed('k');
    await keyed('k', T0 + 9);
    const all = { ...none, origin: 1, flow: 2, queue: 1, active: 1, dead: 0, runs: 0, waiters: 0 };
    expect(await totals()).toMatchObject({ ...all, scheduled: 1, oldestDueMs: 5 });
    expect(await totals(T0 + 9)).toMatchObject({ ...all, scheduled: 0, due: 1, oldestDueMs: 14 });
  });

  it('counts the dead messages and the active runs of all projects', async () => {
    await world().acceptDead(T0);
    await world().acceptDead(T0, { projectId: OTHER_PROJECT });
    await startRun(world());
    expect(await world().store.backlog.readTotals({ nowMs: T0 })).toMatchObject({ dead: 2, runs: 1, waiters: 0 });
  });

  it('counts dead messages by the status of their response, or by the kind of their error', async () => {
    for (const [at, status] of [500, 404, 500].entries()) await world().acceptDead(T0 + at, {}, status);
    for (const error of [
      'timeout: no response within 5 ms',
      'timeout: no response within 9 ms',
      'connection refused',
    ]) {
      const { message, claimToken } = await world().acceptClaimed();
      const { deadLetter, ...change } = lastFailure(T0 + 10, 0);
      if (!deadLetter) throw new Error('there is no dead letter');
      const withoutResponse = { ...change, deadLetter: { ...deadLetter, responseBody: bytes(error) } };
      await world().settle(message, claimToken, withoutResponse, T0 + 10);
    }
    await world().acceptDead(T0, { projectId: OTHER_PROJECT });
    expect(await failures()).toEqual({
      messages: { count: 6, isAtLeast: false },
      runs: { count: 0, isAtLeast: false },
      lookedAt: 6,
      causes: expect.arrayContaining([
        { responseStatus: 500, count: 2, runs: 0, lastAtMs: T0 + 2 },
        { responseStatus: 0, error: 'timeout', count: 2, runs: 0, lastAtMs: T0 + 10 },
        { responseStatus: 404, count: 1, runs: 0, lastAtMs: T0 + 1 },
        { responseStatus: 0, error: 'connection refused', count: 1, runs: 0, lastAtMs: T0 + 10 },
      ]),
    });
  });
}
