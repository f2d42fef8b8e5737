import { expect, it } from 'vitest';
import { backlogKey } from '../../../src/engine/lanes/backlog-key.ts';
import type { Change, Message, NewMessage } from '../../../src/engine/model.ts';
import {
  bytes,
  delivered,
  eachWorld,
  lastFailure,
  type OpenStore,
  PROJECT,
  retrying,
  settlement,
  T0,
} from './world.ts';

/** Messages that follow from an attempt exist exactly when its settle was saved (P3). */
export function followsConformance(open: OpenStore): void {
  const world = eachWorld(open);

  /** One that starts at once, one in the backlog of its origin, one that is due and waits. */
  function threeFollows(): [NewMessage, NewMessage, NewMessage] {
    return [
      world().message({
        state: { kind: 'claimed', claimToken: world().number(), worker: 'w1' },
        body: bytes('told'),
      }),
      world().message({ state: { kind: 'origin', dueAtMs: T0 } }),
      world().message({ url: 'https://other.example/cb' }),
    ];
  }

  it('saves the messages that follow with the change, each unchanged', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    const follows = threeFollows();
    const result = await world().settle(message, claimToken, { ...delivered(T0), follows });
    expect(result).toEqual({
      kind: 'saved',
      follows: [{ state: 'claimed' }, { state: 'origin' }, { state: 'due' }],
    });
    const [atOnce, inBacklog, due] = follows;
    expect(await world().find(atOnce.message)).toEqual(atOnce.message);
    expect(await world().statesOf(atOnce.message)).toEqual(['CREATED', 'ACTIVE']);
    expect(await world().waitingBacklogs()).toEqual([backlogKey(PROJECT, inBacklog.message.origin)]);
    expect((await world().claim()).claimed.map((claimed) => claimed.message)).toEqual([due.message]);
    const { claimed } = await world().claim({
      due: false,
      backlogsToServe: [backlogKey(PROJECT, inBacklog.message.origin)],
    });
    expect(claimed.map((each) => each.message)).toEqual([inBacklog.message]);
  });

  it.each<[string, () => Change]>([
    ['a retry', () => retrying(T0, T0 + 1_000, 1)],
    ['a deadLetter', () => lastFailure(T0)],
  ])('saves following messages with %s', async (_name, change) => {
    const { message, claimToken } = await world().acceptClaimed();
    const follows = threeFollows();
    await world().settle(message, claimToken, { ...change(), follows });
    for (const followUp of follows) expect(await world().find(followUp.message)).toEqual(followUp.message);
  });

  it('settles a following message under the token that it was saved with', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    const followToken = world().number();
    const followUp = world().message({ state: { kind: 'claimed', claimToken: followToken, worker: 'w1' } });
    await world().settle(message, claimToken, { ...delivered(T0), follows: [followUp] });
    const settled = await world().settle(followUp.message, followToken, delivered(T0 + 1));
    expect(settled).toEqual({ kind: 'saved' });
    expect(await world().statesOf(followUp.message)).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
  });

  it('lets a following message wait for its flow-control key, and start when the key has capacity', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    const settings = { flowControl: { key: 'k', parallelism: 1, periodS: 1 } };
    const [first, second] = [world().number(), world().number()].map((token) =>
      world().message({ state: { kind: 'claimed', claimToken: token, worker: 'w1' }, settings }),
    ) as [NewMessage, NewMessage];
    const change = { ...delivered(T0), follows: [first, second] };
    const result = await world().settle(message, claimToken, change);
    expect(result).toEqual({ kind: 'saved', follows: [{ state: 'claimed' }, { state: 'flow' }] });
    expect((await world().claim()).claimed).toEqual([]);
    const firstToken = first.state.kind === 'claimed' ? first.state.claimToken : -1;
    await world().settle(first.message, firstToken, delivered(T0));
    expect((await world().claim()).claimed.map((claimed) => claimed.message)).toEqual([second.message]);
  });

  it('keeps the permit of a queue until the callbacks of its message have ended, however often they are retried', async () => {
    const settings = { queueName: 'q' };
    const { message, claimToken } = await world().acceptClaimed({ settings });
    const second = await world().accept({ settings });
    const tokens = [world().number(), world().number()] as const;
    const follows = tokens.map((token) =>
      world().message({ state: { kind: 'claimed', claimToken: token, worker: 'w1' } }),
    );
    const [callback, failureCallback] = follows as [NewMessage, NewMessage];
    await world().settle(message, claimToken, { ...lastFailure(T0), follows });
    expect((await world().claim()).claimed).toEqual([]);
    expect(await world().store.queues.findQueue({ projectId: PROJECT, name: 'q', nowMs: T0 })).toMatchObject({
      lag: 1,
    });
    await world().settle(callback.message, tokens[0], delivered(T0 + 1), T0 + 1);
    const retry = settlement(failureCallback.message, tokens[1], retrying(T0 + 1, T0 + 50, 1));
    await world().store.messages.settle({ settlement: retry, nowMs: T0 + 1 });
    expect((await world().claim({}, T0 + 49)).claimed).toEqual([]);
    const [again] = (await world().claim({}, T0 + 50)).claimed;
    await world().settle(failureCallback.message, again?.claimToken ?? -1, delivered(T0 + 51), T0 + 51);
    expect((await world().claim({}, T0 + 51)).claimed.map((claimed) => claimed.message)).toEqual([second]);
  });

  /** A delivered message of the queue `q` with a callback in flight, and a waiting message behind it. */
  async function delivering(): Promise<{ callback: Message; callbackToken: number; behind: Message }> {
    const settings = { queueName: 'q' };
    const { message, claimToken } = await world().acceptClaimed({ settings });
    const behind = await world().accept({ settings });
    const callbackToken = world().number();
    const callback = world().message({ state: { kind: 'claimed', claimToken: callbackToken, worker: 'w1' } });
    await world().settle(message, claimToken, { ...delivered(T0), follows: [callback] });
    return { callback: callback.message, callbackToken, behind };
  }

  it('lets the queue continue when the callbacks of its message have ended, whatever follows from these', async () => {
    const { callback, callbackToken, behind } = await delivering();
    const follows = [world().message({ notBeforeMs: T0 + 1_000 })];
    await world().settle(callback, callbackToken, { ...delivered(T0), follows });
    expect((await world().claim()).claimed.map((claimed) => claimed.message)).toEqual([behind]);
  });

  it('retries a callback although the queue of its message is paused, and starts no other message of the queue', async () => {
    const { callback, callbackToken } = await delivering();
    await world().store.queues.setQueuePaused({ projectId: PROJECT, name: 'q', isPaused: true, nowMs: T0 });
    await world().settle(callback, callbackToken, retrying(T0, T0 + 10, 1));
    const { claimed } = await world().claim({}, T0 + 10);
    expect(claimed.map(({ message }) => message)).toEqual([callback]);
  });

  it('lets the queue continue when the callback that it waits for is cancelled', async () => {
    const settings = { queueName: 'q' };
    const { message, claimToken } = await world().acceptClaimed({ settings });
    const second = await world().accept({ settings });
    const callback = world().message({ state: { kind: 'due', dueAtMs: T0 + 1_000 } });
    await world().settle(message, claimToken, { ...delivered(T0), follows: [callback] });
    expect(
      await world().store.messages.cancelById({ projectId: PROJECT, ids: [callback.message.id], nowMs: T0 + 1 }),
    ).toBe(1);
    expect((await world().claim({}, T0 + 1)).claimed.map((claimed) => claimed.message)).toEqual([second]);
  });

  it('logs the end of a message before the start of the messages that follow', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    const followUp = world().message();
    await world().settle(message, claimToken, { ...delivered(T0), follows: [followUp] });
    const { items } = await world().store.logs.listLogs({
      projectId: PROJECT,
      filter: {},
      page: { count: 10, order: 'earliestFirst' },
    });
    expect(items.map((entry) => [entry.message.id, entry.state])).toEqual([
      [message.id, 'CREATED'],
      [message.id, 'ACTIVE'],
      [message.id, 'DELIVERED'],
      [followUp.message.id, 'CREATED'],
    ]);
  });

  it('saves no following messages of a stale result (P6)', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    await world().store.messages.release({
      claims: [{ key: message.key, projectId: message.projectId, claimToken }],
      nowMs: T0,
    });
    await world().claim();
    const follows = threeFollows();
    const result = await world().settle(message, claimToken, { ...delivered(T0), follows });
    expect(result).toEqual({ kind: 'stale' });
    for (const followUp of follows) {
      expect(await world().find(followUp.message)).toBeUndefined();
      expect(await world().logsOf(followUp.message)).toEqual([]);
    }
  });

  it('saves following messages once, when one result is sent twice', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    const [first, second] = [world().message(), world().message()];
    const results = await Promise.all(
      [first, second].map((followUp) => world().settle(message, claimToken, { ...delivered(T0), follows: [followUp] })),
    );
    expect(results).toEqual([{ kind: 'saved', follows: [{ state: 'due' }] }, { kind: 'stale' }]);
    expect([await world().find(first.message), await world().find(second.message)]).toEqual([first.message, undefined]);
  });

  it('saves no following messages when a cancel takes effect, and returns none', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    await world().store.messages.cancelById({ projectId: PROJECT, ids: [message.id], nowMs: T0 });
    const change = { ...retrying(T0, T0 + 1_000, 1), follows: threeFollows() };
    const changeIfCancelRequested: Change = { next: { kind: 'finished' }, events: [{ atMs: T0, state: 'CANCELED' }] };
    const result = await world().store.messages.settle({
      settlement: { ...settlement(message, claimToken, change), changeIfCancelRequested },
      nowMs: T0,
    });
    expect(result).toEqual({ kind: 'saved', isCancelled: true });
    for (const followUp of change.follows) expect(await world().find(followUp.message)).toBeUndefined();
  });

  it('saves the messages that follow from a delivery although a cancel was requested', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    await world().store.messages.cancelById({ projectId: PROJECT, ids: [message.id], nowMs: T0 });
    const follows = threeFollows();
    expect(await world().settle(message, claimToken, { ...delivered(T0), follows })).toMatchObject({ kind: 'saved' });
    for (const followUp of follows) expect(await world().find(followUp.message)).toEqual(followUp.message);
  });
}
