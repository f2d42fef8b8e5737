import { expect, it } from 'vitest';
import type { AttributeFilter } from '../../../src/engine/lists/filters.ts';
import type { Message } from '../../../src/engine/model.ts';
import { mintMessageId } from '../../../src/protocol/ids.ts';
import { cancelMatching as cancelPart } from '../cancel-matching.ts';
import { delivered, eachWorld, type OpenStore, OTHER_PROJECT, PROJECT, retrying, T0 } from './world.ts';

export function cancelConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const cancelled = ['CREATED', 'CANCEL_REQUESTED', 'CANCELED'];
  const cancelMatching = async (filter: AttributeFilter, afterKey = -1) =>
    (await cancelPart(world().store, PROJECT, filter, afterKey, T0)).cancelled;

  it('removes delayed, waiting and retried messages at once', async () => {
    const delayed = await world().accept({ notBeforeMs: T0 + 9_000 });
    const inBacklog = await world().accept({ state: { kind: 'origin', dueAtMs: T0 } });
    const { message: failed, claimToken } = await world().acceptClaimed();
    await world().settle(failed, claimToken, retrying(T0, T0 + 1_000, 1));
    expect(
      await world().store.messages.cancelById({
        projectId: PROJECT,
        ids: [delayed.id, inBacklog.id, failed.id],
        nowMs: T0 + 1,
      }),
    ).toBe(3);
    for (const message of [delayed, inBacklog, failed]) expect(await world().find(message)).toBeUndefined();
    expect(await world().statesOf(delayed)).toEqual(cancelled);
    expect((await world().statesOf(failed)).slice(-3)).toEqual(['RETRY', 'CANCEL_REQUESTED', 'CANCELED']);
    expect((await world().claim({}, T0 + 99_000)).claimed).toEqual([]);
  });

  it('marks a message in flight; a repeated cancel counts it again and logs nothing more', async () => {
    const { message } = await world().acceptClaimed();
    expect(await world().store.messages.cancelById({ projectId: PROJECT, ids: [message.id], nowMs: T0 + 1 })).toBe(1);
    expect(
      await world().store.messages.cancelById({ projectId: PROJECT, ids: [message.id, message.id], nowMs: T0 + 2 }),
    ).toBe(1);
    expect(await world().statesOf(message)).toEqual(['CREATED', 'ACTIVE', 'CANCEL_REQUESTED']);
    expect(await world().find(message)).toEqual(message);
  });

  it('returns the claims of cancelled messages in flight, once saved, and again with a repeated cancel', async () => {
    const named: number[] = [];
    world().store.events.onCancelled = (claimTokens) => named.push(...claimTokens);
    const { message, claimToken } = await world().acceptClaimed();
    const waiting = await world().accept();
    await world().store.messages.cancelById({ projectId: PROJECT, ids: [waiting.id], nowMs: T0 });
    expect(named).toEqual([]);
    await world().store.messages.cancelById({ projectId: PROJECT, ids: [message.id, waiting.id], nowMs: T0 });
    await world().store.messages.cancelById({ projectId: PROJECT, ids: [message.id], nowMs: T0 });
    expect(named).toEqual([claimToken, claimToken]);
  });

  it('skips ids that are unknown, finished, cancelled or of another project', async () => {
    const theirs = await world().accept({ projectId: OTHER_PROJECT });
    const { message: done, claimToken } = await world().acceptClaimed();
    await world().settle(done, claimToken, delivered());
    const gone = await world().accept();
    await world().store.messages.cancelById({ projectId: PROJECT, ids: [gone.id], nowMs: T0 });
    const other = world().message().message;
    const ids = [theirs.id, done.id, gone.id, other.id, 'msg_nothing', ''];
    expect(await world().store.messages.cancelById({ projectId: PROJECT, ids, nowMs: T0 })).toBe(0);
    expect(await world().store.messages.cancelById({ projectId: PROJECT, ids: [], nowMs: T0 })).toBe(0);
    expect(await world().find(theirs)).toEqual(theirs);
  });

  it('skips an id that only shares the key with a message', async () => {
    const waiting = await world().accept();
    const { message: running } = await world().acceptClaimed();
    const alike = [waiting, running].map(({ key }) =>
      mintMessageId(key, (count) => new Uint8Array(count).fill(1 + (key % 200))),
    );
    expect(await world().store.messages.cancelById({ projectId: PROJECT, ids: alike, nowMs: T0 })).toBe(0);
    expect(await world().find(waiting)).toEqual(waiting);
    expect(await world().statesOf(running)).toEqual(['CREATED', 'ACTIVE']);
  });

  it('is never logged before earlier events, whatever the clock shows', async () => {
    const waiting = await world().accept();
    const { message: running, claimToken } = await world().acceptClaimed();
    expect(
      await world().store.messages.cancelById({ projectId: PROJECT, ids: [waiting.id, running.id], nowMs: T0 - 1_000 }),
    ).toBe(2);
    const timesOf = async (message: Message) => (await world().logsOf(message)).map(({ atMs }) => atMs);
    expect(await timesOf(waiting)).toEqual([T0, T0, T0]);
    expect(await timesOf(running)).toEqual([T0, T0, T0]);
    await world().settle(running, claimToken, delivered(T0 - 500));
    expect(await timesOf(running)).toEqual([T0, T0, T0, T0]);
  });

  it('finds the matching messages after a key, and skips marked ones', async () => {
    const messages = [];
    for (let index = 0; index < 4; index++) messages.push(await world().accept({ notBeforeMs: T0 + 9_000 - index }));
    const { message: running } = await world().acceptClaimed();
    expect(await cancelMatching({}, messages[1]?.key)).toBe(3);
    const left = await Promise.all([...messages, running].map((message) => world().find(message)));
    expect(left.map((message) => message !== undefined)).toEqual([true, true, false, false, true]);
    expect(await cancelMatching({})).toBe(2);
    expect(await cancelMatching({})).toBe(0);
    expect(await world().statesOf(running)).toEqual(['CREATED', 'ACTIVE', 'CANCEL_REQUESTED']);
  });

  it('returns where it continues when there are very many', async () => {
    const messages = [];
    for (let index = 0; index < 501; index++) messages.push(await world().accept({ notBeforeMs: T0 + 9_000 }));
    const last = messages.at(-2)?.key;
    const part = await cancelPart(world().store, PROJECT, {}, -1, T0);
    expect(part).toEqual({ cancelled: 500, nextAfterKey: last });
    expect(await cancelPart(world().store, PROJECT, {}, last ?? -1, T0)).toEqual({ cancelled: 1 });
  });

  it('finds the oldest up to a limit', async () => {
    const [first, second] = [await world().accept({ notBeforeMs: T0 + 9_000 }), await world().accept({})];
    const part = await cancelPart(world().store, PROJECT, {}, -1, T0, 1);
    expect(part).toEqual({ cancelled: 1, nextAfterKey: first.key });
    expect(await world().find(first)).toBeUndefined();
    expect(await world().find(second)).toEqual(second);
  });

  it('does not affect messages of other projects', async () => {
    const theirs = await world().accept({ projectId: OTHER_PROJECT });
    expect(await cancelMatching({})).toBe(0);
    expect(await world().find(theirs)).toEqual(theirs);
  });

  it('narrows by each kind of filter: values of one are alternatives, kinds narrow each other', async () => {
    const one = await world().accept({
      url: 'https://One.example:8080/Path?q=1',
      callerIp: '10.0.0.1',
      settings: { labels: ['a', 'ab'], queueName: 'q', flowControl: { key: 'k', periodS: 1 } },
    });
    const two = await world().accept({
      url: 'http://two.example',
      createdAtMs: T0 + 10,
      settings: { labels: ['b'], topicName: 't', scheduleId: 's' },
    });
    const matching: [filter: object, found: 'one' | 'two' | 'both' | 'none'][] = [
      [{ url: ['https://One.example:8080/Path?q=1'] }, 'one'],
      [{ url: ['https://one.example:8080/Path?q=1'] }, 'none'],
      [{ url: ['http://two.example', 'https://One.example:8080/Path?q=1'] }, 'both'],
      [{ host: ['ONE.example:8080'] }, 'one'],
      [{ host: ['one.example'] }, 'none'],
      [{ host: ['two.example'] }, 'two'],
      [{ host: ['two.example:80'] }, 'two'],
      [{ path: ['/Path'] }, 'one'],
      [{ path: ['/path'] }, 'none'],
      [{ path: ['/'] }, 'two'],
      [{ label: ['a'] }, 'one'],
      [{ label: ['A'] }, 'none'],
      [{ label: ['b'] }, 'two'],
      [{ label: ['ab', 'b'] }, 'both'],
      [{ label: ['%', ','] }, 'none'],
      [{ label: ['a,ab'] }, 'none'],
      [{ label: [] }, 'none'],
      [{ queueName: ['q'] }, 'one'],
      [{ flowControlKey: ['k'] }, 'one'],
      [{ callerIp: ['10.0.0.1'] }, 'one'],
      [{ topicName: ['t'] }, 'two'],
      [{ scheduleId: ['s'] }, 'two'],
      [{ fromMs: T0 + 10 }, 'two'],
      [{ toMs: T0 + 9 }, 'one'],
      [{ fromMs: T0, toMs: T0 + 10 }, 'both'],
      [{ label: ['a'], queueName: ['q'] }, 'one'],
      [{ label: ['a'], topicName: ['t'] }, 'none'],
    ];
    for (const [filter, expected] of matching) {
      const { items } = await world().store.logs.listLogs({
        projectId: PROJECT,
        filter,
        page: { count: 10, order: 'earliestFirst' },
      });
      const ids = items.map(({ message }) => message.id);
      const found = ids.length === 2 ? 'both' : ids.length === 0 ? 'none' : ids[0] === one.id ? 'one' : 'two';
      expect([filter, found]).toEqual([filter, expected]);
    }
    expect(await cancelMatching({ label: ['a'], fromMs: T0 + 1 })).toBe(0);
    expect(await cancelMatching({ label: ['b', 'zz'] })).toBe(1);
    expect(await world().find(one)).toEqual(one);
    expect(await world().find(two)).toBeUndefined();
  });
}
