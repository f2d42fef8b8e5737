import { expect, it } from 'vitest';
import type { LogFilter } from '../../../src/engine/lists/filters.ts';
import type { LogEvent } from '../../../src/engine/model.ts';
import type { LogEntry } from '../../../src/engine/stores.ts';
import { ApiError } from '../../../src/protocol/errors.ts';
import { bytes, delivered, eachWorld, lastFailure, type OpenStore, OTHER_PROJECT, PROJECT, T0 } from './world.ts';

type Order = 'latestFirst' | 'earliestFirst';

export function logsConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const nameOf = ({ message, state }: LogEntry) => `${message.key} ${state}`;

  async function walk(
    filter: LogFilter,
    order: Order,
    count: number,
    between?: () => Promise<unknown>,
  ): Promise<string[]> {
    const names: string[] = [];
    let cursor: string | undefined;
    do {
      const request = cursor === undefined ? { count, order } : { count, order, cursor };
      const page = await world().store.logs.listLogs({ projectId: PROJECT, filter, page: request });
      expect(page.items.length).toBeLessThanOrEqual(count);
      names.push(...page.items.map(nameOf));
      cursor = page.cursor;
      await between?.();
    } while (cursor !== undefined);
    return names;
  }

  it('lists by time, then by the order of events, in both directions', async () => {
    const { message: a, claimToken } = await world().acceptClaimed({ createdAtMs: T0 + 5 });
    const b = await world().accept({ createdAtMs: T0 });
    await world().settle(a, claimToken, delivered(T0 + 5));
    const expected = [`${b.key} CREATED`, `${a.key} CREATED`, `${a.key} ACTIVE`, `${a.key} DELIVERED`];
    expect(await walk({}, 'earliestFirst', 100)).toEqual(expected);
    expect(await walk({}, 'latestFirst', 100)).toEqual(expected.toReversed());
  });

  it('omits the cursor on the last page, even if that is exactly full', async () => {
    for (let index = 0; index < 4; index++) await world().accept();
    const first = await world().store.logs.listLogs({
      projectId: PROJECT,
      filter: {},
      page: { count: 2, order: 'latestFirst' },
    });
    const last = await world().store.logs.listLogs({
      projectId: PROJECT,
      filter: {},
      page: { count: 2, order: 'latestFirst', cursor: first.cursor ?? '' },
    });
    expect(first.cursor).toMatch(/^\d+-\d+$/);
    expect(last.items).toHaveLength(2);
    expect(last).not.toHaveProperty('cursor');
  });

  it.each<Order>(['latestFirst', 'earliestFirst'])(
    'lists %s without skipping or repeating under concurrent writes',
    async (order) => {
      for (let index = 0; index < 11; index++) await world().accept({ createdAtMs: T0 + Math.floor(index / 4) });
      const before = await walk({}, order, 1_000);
      const lateTime = order === 'latestFirst' ? T0 + 50 : T0 - 50;
      const walked = await walk({}, order, 3, () => world().accept({ createdAtMs: lateTime }));
      expect(walked).toEqual(before);
    },
  );

  it('accepts a plain time as a cursor: nothing newer than it', async () => {
    const old = await world().accept({ createdAtMs: T0 });
    const same = await world().accept({ createdAtMs: T0 + 1 });
    await world().accept({ createdAtMs: T0 + 2 });
    const page = await world().store.logs.listLogs({
      projectId: PROJECT,
      filter: {},
      page: { count: 10, order: 'latestFirst', cursor: `${T0 + 1}` },
    });
    expect(page.items.map(({ message }) => message.key)).toEqual([same.key, old.key]);
  });

  it.each(['', 'x', '-1', '1-', '1-2-3', '1.5', '99999999999999999'])('refuses the cursor %j', async (cursor) => {
    const listing = world().store.logs.listLogs({
      projectId: PROJECT,
      filter: {},
      page: { count: 1, order: 'latestFirst', cursor },
    });
    await expect(listing).rejects.toThrow(ApiError);
    await expect(listing).rejects.toThrow(/^invalid query parameter cursor: /);
    await expect(
      world().store.dead.listDead({ projectId: PROJECT, filter: {}, page: { count: 1, order: 'latestFirst', cursor } }),
    ).rejects.toThrow(ApiError);
  });

  it('filters by message, state, time and attributes, page by page', async () => {
    const labelled = await world().accept({ createdAtMs: T0 + 1, settings: { labels: ['x'] } });
    const { message: done, claimToken } = await world().acceptClaimed({ createdAtMs: T0 + 2 });
    await world().settle(done, claimToken, delivered(T0 + 3));
    expect(await walk({ messageId: [done.id] }, 'latestFirst', 2)).toEqual([
      `${done.key} DELIVERED`,
      `${done.key} ACTIVE`,
      `${done.key} CREATED`,
    ]);
    expect(await walk({ messageId: ['msg_unknown'] }, 'latestFirst', 2)).toEqual([]);
    expect(await walk({ messageId: [] }, 'latestFirst', 2)).toEqual([]);
    expect(await walk({ messageId: [done.id, labelled.id], state: ['CREATED'] }, 'earliestFirst', 1)).toEqual([
      `${labelled.key} CREATED`,
      `${done.key} CREATED`,
    ]);
    expect(await walk({ state: ['ACTIVE', 'DELIVERED'] }, 'earliestFirst', 1)).toEqual([
      `${done.key} ACTIVE`,
      `${done.key} DELIVERED`,
    ]);
    expect(await walk({ label: ['x'] }, 'earliestFirst', 1)).toEqual([`${labelled.key} CREATED`]);
    expect(await walk({ fromMs: T0 + 2, toMs: T0 + 2 }, 'earliestFirst', 1)).toEqual([
      `${done.key} CREATED`,
      `${done.key} ACTIVE`,
    ]);
  });

  it('keeps projects apart', async () => {
    const theirs = await world().accept({ projectId: OTHER_PROJECT });
    expect(await walk({}, 'latestFirst', 10)).toEqual([]);
    expect(await walk({ messageId: [theirs.id] }, 'latestFirst', 10)).toEqual([]);
    expect(await world().statesOf(theirs)).toEqual(['CREATED']);
  });

  it('gives FAILED the error of the last attempt, even if a filter excludes the other entries', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    await world().settle(message, claimToken, lastFailure(T0 + 7), T0 + 7);
    const filter = { state: ['FAILED' as const] };
    const page = { count: 5, order: 'latestFirst' as const };
    const { items } = await world().store.logs.listLogs({ projectId: PROJECT, filter, page });
    expect(items.map(({ detail }) => detail)).toEqual([{ error: 'status 500' }]);
  });

  it('fills pages across many entries that do not match', async () => {
    const wanted = await world().accept({ createdAtMs: T0, settings: { labels: ['wanted'] } });
    const crowd = Array.from({ length: 25_000 }, (_, index) => world().message({ createdAtMs: T0 + 1 + index }));
    await world().save(crowd);
    const page = await world().store.logs.listLogs({
      projectId: PROJECT,
      filter: { label: ['wanted'] },
      page: { count: 5, order: 'latestFirst' },
    });
    expect(page.items.map(nameOf)).toEqual([`${wanted.key} CREATED`]);
    expect(page.cursor).toBeUndefined();
    const byState = await world().store.logs.listLogs({
      projectId: PROJECT,
      filter: { state: ['FAILED'] },
      page: { count: 5, order: 'latestFirst' },
    });
    expect(byState).toEqual({ items: [] });
  });

  it('ends a page early when it has many bytes', async () => {
    const body = new Uint8Array(6 * 1024 * 1024);
    const keys: string[] = [];
    for (let index = 0; index < 4; index++) {
      keys.push(`${(await world().accept({ body, createdAtMs: T0 + index })).key} CREATED`);
    }
    const page = await world().store.logs.listLogs({
      projectId: PROJECT,
      filter: {},
      page: { count: 100, order: 'earliestFirst' },
    });
    expect(page.items).toHaveLength(2);
    expect(await walk({}, 'earliestFirst', 100)).toEqual(keys);
    const half = { count: 100, order: 'earliestFirst', bytesMax: 8 * 1024 * 1024 } as const;
    expect((await world().store.logs.listLogs({ projectId: PROJECT, filter: {}, page: half })).items).toHaveLength(1);
  });

  it.each(['headers', 'responses'])('counts the bytes of %s too', async (which) => {
    const large = 'x'.repeat(6 * 1024 * 1024);
    for (let index = 0; index < 4; index++) {
      const atMs = T0 + index;
      const header = which === 'headers' ? { 'X-Large': [large] } : {};
      const { message, claimToken } = await world().acceptClaimed({ header, createdAtMs: atMs });
      const response = { status: 500, header: {}, body: bytes(which === 'responses' ? large : '') };
      const events: LogEvent[] = [{ atMs, state: 'ERROR', detail: { error: 'failed', response } }];
      const next = { kind: 'waiting', dueAtMs: T0 + 99, retried: 1 } as const;
      await world().settle(message, claimToken, { next, events });
    }
    const page = await world().store.logs.listLogs({
      projectId: PROJECT,
      filter: { state: ['ERROR'] },
      page: { count: 100, order: 'earliestFirst' },
    });
    expect([page.items.length, typeof page.cursor]).toEqual([2, 'string']);
  });
}
