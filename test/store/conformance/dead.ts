import { expect, it } from 'vitest';
import { bytes, eachWorld, lastFailure, type OpenStore, OTHER_PROJECT, PROJECT, T0 } from './world.ts';

export function deadConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const list = async (filter = {}, order: 'latestFirst' | 'earliestFirst' = 'latestFirst') => {
    const page = await world().store.dead.listDead({ projectId: PROJECT, filter, page: { count: 100, order } });
    return page.items.map(({ dlqId }) => dlqId);
  };

  it('lists by failure time in both directions, with the whole message and its dead letter', async () => {
    const second = await world().acceptDead(T0 + 2, { body: bytes('body') });
    const first = await world().acceptDead(T0 + 1);
    const third = await world().acceptDead(T0 + 2);
    expect(await list()).toEqual([third.dlqId, second.dlqId, first.dlqId]);
    expect(await list({}, 'earliestFirst')).toEqual([first.dlqId, second.dlqId, third.dlqId]);
    const found = await world().store.dead.findDead({ projectId: PROJECT, dlqId: second.dlqId });
    expect(found).toMatchObject({ message: second.message, deadLetter: { failedAtMs: T0 + 2, responseStatus: 500 } });
  });

  it('finds entries in the requested order, and none under an id that differs slightly', async () => {
    const a = await world().acceptDead(T0 + 1);
    const b = await world().acceptDead(T0 + 2);
    const wrong = [`${T0}-${a.message.key}`, `0${a.dlqId}`, `${a.message.key}`, 'x', ''];
    expect(await world().store.dead.countDead({ projectId: PROJECT, dlqIds: [b.dlqId, ...wrong, a.dlqId] })).toBe(2);
    expect(await world().store.dead.countDead({ projectId: OTHER_PROJECT, dlqIds: [a.dlqId] })).toBe(0);
    const found = await world().store.dead.findDeadMany({ projectId: PROJECT, dlqIds: [b.dlqId, ...wrong, a.dlqId] });
    expect(found.map(({ dlqId }) => dlqId)).toEqual([b.dlqId, a.dlqId]);
    expect(await world().store.dead.findDead({ projectId: OTHER_PROJECT, dlqId: a.dlqId })).toBeUndefined();
    expect(await world().store.dead.deleteDead({ projectId: PROJECT, dlqIds: wrong })).toBe(0);
  });

  it('filters by message, response, time and attributes', async () => {
    const a = await world().acceptDead(T0 + 1, { settings: { labels: ['x'] } }, 404);
    const b = await world().acceptDead(T0 + 2, {}, 0);
    expect(await list({ messageId: [a.message.id, 'msg_unknown'] })).toEqual([a.dlqId]);
    expect(await list({ messageId: ['msg_unknown'] })).toEqual([]);
    expect(await list({ messageId: [a.message.id], responseStatus: [500] })).toEqual([]);
    expect(await list({ responseStatus: [404, 999] })).toEqual([a.dlqId]);
    expect(await list({ responseStatus: [0] })).toEqual([b.dlqId]);
    expect(await list({ label: ['x'] })).toEqual([a.dlqId]);
    expect(await list({ fromMs: T0 + 2 })).toEqual([b.dlqId]);
    expect(await list({ toMs: T0 + 1 })).toEqual([a.dlqId]);
    expect(await list({ fromMs: T0 + 1, toMs: T0 + 2 })).toEqual([b.dlqId, a.dlqId]);
    expect(await list({ endpointName: ['x'] })).toEqual([]);
    const odd = 'a "name", with \\ and %';
    const c = await world().acceptDead(T0, { settings: { topicName: 'g', endpointName: odd } }, 500);
    expect(await list({ endpointName: [odd, 'x'] })).toEqual([c.dlqId]);
    expect(await list({ endpointName: [odd.slice(0, -1)] })).toEqual([]);
  });

  it('pages without skipping or repeating while entries are added and removed', async () => {
    const dlqIds: string[] = [];
    for (let index = 0; index < 7; index++) dlqIds.push((await world().acceptDead(T0 + Math.floor(index / 2))).dlqId);
    const latest = dlqIds.toReversed();
    const first = await world().store.dead.listDead({
      projectId: PROJECT,
      filter: {},
      page: { count: 3, order: 'latestFirst' },
    });
    await world().acceptDead(T0 + 100);
    await world().store.dead.deleteDead({ projectId: PROJECT, dlqIds: [latest[2] ?? '', latest[4] ?? ''] });
    const second = await world().store.dead.listDead({ projectId: PROJECT, filter: {}, page: page(3, first.cursor) });
    expect(first.items.map(({ dlqId }) => dlqId)).toEqual(latest.slice(0, 3));
    expect(second.items.map(({ dlqId }) => dlqId)).toEqual([latest[3], latest[5], latest[6]]);
    expect(second.cursor).toBeUndefined();
  });

  it('ends a page early when the responses have many bytes', async () => {
    for (let index = 0; index < 4; index++) {
      const atMs = T0 + index;
      const { message, claimToken } = await world().acceptClaimed({ createdAtMs: atMs });
      const change = lastFailure(atMs, 500);
      Object.assign(change.deadLetter ?? {}, { responseBody: new Uint8Array(6 * 1024 * 1024) });
      await world().settle(message, claimToken, change);
    }
    const found = await world().store.dead.listDead({
      projectId: PROJECT,
      filter: {},
      page: { count: 100, order: 'latestFirst' },
    });
    expect([found.items.length, typeof found.cursor]).toEqual([2, 'string']);
  });

  it('deletes entries, once each, and returns their number', async () => {
    const a = await world().acceptDead(T0 + 1);
    const b = await world().acceptDead(T0 + 2);
    expect(await world().store.dead.deleteDead({ projectId: OTHER_PROJECT, dlqIds: [a.dlqId] })).toBe(0);
    expect(await world().store.dead.deleteDead({ projectId: PROJECT, dlqIds: [a.dlqId, a.dlqId, 'x'] })).toBe(1);
    expect(await world().store.dead.deleteDead({ projectId: PROJECT, dlqIds: [a.dlqId] })).toBe(0);
    expect(await list()).toEqual([b.dlqId]);
    expect(await world().statesOf(a.message)).toEqual(['CREATED', 'ACTIVE', 'ERROR', 'FAILED']);
  });

  it('replaces entries by their successors in one transaction', async () => {
    const a = await world().acceptDead(T0 + 1);
    const b = await world().acceptDead(T0 + 2);
    const retries = [a, b].map(({ dlqId }) => ({ dlqId, successor: world().message() }));
    expect(await world().store.dead.retryDead({ projectId: PROJECT, retries, nowMs: T0 })).toEqual([
      { state: 'due' },
      { state: 'due' },
    ]);
    expect(await list()).toEqual([]);
    for (const { successor } of retries) {
      expect(await world().find(successor.message)).toEqual(successor.message);
      expect(await world().statesOf(successor.message)).toEqual(['CREATED']);
    }
  });

  it('retries nothing when one entry is gone', async () => {
    const a = await world().acceptDead(T0 + 1);
    const b = await world().acceptDead(T0 + 2);
    await world().store.dead.deleteDead({ projectId: PROJECT, dlqIds: [b.dlqId] });
    const retries = [a, b].map(({ dlqId }) => ({ dlqId, successor: world().message() }));
    expect(await world().store.dead.retryDead({ projectId: PROJECT, retries, nowMs: T0 })).toBe('missing');
    expect(await list()).toEqual([a.dlqId]);
    for (const { successor } of retries) expect(await world().find(successor.message)).toBeUndefined();
    const foreign = [{ dlqId: a.dlqId, successor: world().message({ projectId: OTHER_PROJECT }) }];
    expect(await world().store.dead.retryDead({ projectId: OTHER_PROJECT, retries: foreign, nowMs: T0 })).toBe(
      'missing',
    );
  });

  it('lets one of two concurrent retries of an entry win', async () => {
    const { dlqId } = await world().acceptDead(T0 + 1);
    const successors = [world().message(), world().message()];
    const results = await Promise.all(
      successors.map((successor) =>
        world().store.dead.retryDead({ projectId: PROJECT, retries: [{ dlqId, successor }], nowMs: T0 }),
      ),
    );
    expect(results).toEqual(expect.arrayContaining([[{ state: 'due' }], 'missing']));
    const found = await Promise.all(successors.map(({ message }) => world().find(message)));
    expect(found.filter((message) => message !== undefined)).toHaveLength(1);
  });
}

function page(count: number, cursor: string | undefined) {
  if (cursor === undefined) throw new Error('there is no next page');
  return { count, cursor, order: 'latestFirst' as const };
}
