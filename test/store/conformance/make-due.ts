import { expect, it } from 'vitest';
import type { Change, Message } from '../../../src/engine/model.ts';
import { startRun } from './run-world.ts';
import { eachWorld, type MessageOptions, type OpenStore, OTHER_PROJECT, PROJECT, retrying, T0 } from './world.ts';

const LATER = { notBeforeMs: T0 + 9_000 };
const NOWHERE = { runKey: -1, key: -1 };

export function makeDueConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const makeDue = (message: Message, nowMs = T0 + 1) =>
    world().store.messages.makeDue({ projectId: PROJECT, id: message.id, nowMs });
  const claimed = async (nowMs = T0 + 1) =>
    (await world().claim({}, nowMs)).claimed.map(({ message, retried }) => [message.id, retried]);
  /** The first message of a run, parked for the `parkings`-th time. */
  const parkedRun = async (id: string, parkings = 1): Promise<Message> => {
    const first = await startRun(world(), { id });
    const [claim] = (await world().claim({}, T0)).claimed;
    const change: Change = {
      next: { kind: 'waiting', dueAtMs: T0 + 60_000, retried: 0, parkings },
      events: [{ atMs: T0, state: 'STEP_PARKED', detail: { error: 'changed', nextDeliveryTimeMs: T0 + 60_000 } }],
    };
    await world().settle(first, claim?.claimToken ?? 0, change);
    return first;
  };
  const limited = (options: MessageOptions = {}) => ({
    ...options,
    settings: { flowControl: { key: 'k', parallelism: 1, periodS: 1 } },
  });

  it('starts a message that waits for its delay or its next attempt at once, counted as usual', async () => {
    const heard: number[] = [];
    world().store.events.onDue = (dueAtMs) => heard.push(dueAtMs);
    const delayed = await world().accept(LATER);
    const { message: failed, claimToken } = await world().acceptClaimed();
    await world().settle(failed, claimToken, retrying(T0, T0 + 9_000, 1));
    expect(await claimed()).toEqual([]);
    expect([await makeDue(delayed), await makeDue(failed)]).toEqual(['due', 'due']);
    expect(heard).toEqual([T0 + 1, T0 + 1]);
    expect((await claimed()).toSorted()).toEqual(
      [
        [delayed.id, 0],
        [failed.id, 1],
      ].toSorted(),
    );
  });

  it('changes nothing for a due message', async () => {
    const message = await world().accept();
    const other = await world().accept({ createdAtMs: T0 + 1 });
    expect(await makeDue(message, T0 + 5)).toBe('due');
    expect(await claimed(T0 + 5)).toEqual([
      [message.id, 0],
      [other.id, 0],
    ]);
  });

  it('leaves a message in the wait list of its flow-control key, which is due then', async () => {
    const { message: running, claimToken } = await world().acceptClaimed(limited());
    const waiting = await world().accept(limited(LATER));
    expect(await makeDue(waiting)).toBe('due');
    expect(await claimed()).toEqual([]);
    await world().settle(running, claimToken, retrying(T0, T0 + 60_000, 1), T0 + 2);
    expect(await claimed(T0 + 2)).toEqual([[waiting.id, 0]]);
    const alone = await world().accept({
      ...LATER,
      settings: { flowControl: { key: 'free', parallelism: 1, periodS: 1 } },
    });
    expect(await makeDue(alone, T0 + 3)).toBe('due');
    expect(await claimed(T0 + 3)).toEqual([[alone.id, 0]]);
  });

  it('leaves a message at its position in its queue', async () => {
    const inQueue = { settings: { queueName: 'q' } };
    const first = await world().accept({ ...LATER, ...inQueue });
    const second = await world().accept({ ...LATER, ...inQueue });
    expect(await makeDue(second)).toBe('due');
    expect(await claimed()).toEqual([]);
    expect(await makeDue(first)).toBe('due');
    expect(await claimed()).toEqual([[first.id, 0]]);
  });

  it('starts a parked message of a run at once, and counts from the beginning if it is parked again', async () => {
    const [first, second] = [await parkedRun('a'), await parkedRun('b', 3)];
    const found = (args: { runKey?: number; after?: typeof NOWHERE; limit?: number } = {}) =>
      world().store.runs.findParked({ projectId: PROJECT, after: NOWHERE, limit: 10, ...args });
    const parked = [first, second].map(({ key, id }) => ({ runKey: key, key, id }));
    expect(await found()).toEqual(parked);
    expect(await found({ limit: 1 })).toEqual(parked.slice(0, 1));
    expect(await found({ after: parked[0] ?? NOWHERE })).toEqual(parked.slice(1));
    expect(await found({ runKey: second.key })).toEqual(parked.slice(1));
    expect(await world().store.runs.findParked({ projectId: OTHER_PROJECT, after: NOWHERE, limit: 1 })).toEqual([]);
    expect((await world().store.messages.findLive({ projectId: PROJECT, id: first.id, nowMs: T0 }))?.isParked).toBe(
      true,
    );
    expect(await makeDue(second)).toBe('due');
    expect(await found()).toEqual(parked.slice(0, 1));
    expect(
      (await world().store.messages.findLive({ projectId: PROJECT, id: second.id, nowMs: T0 }))?.isParked,
    ).toBeUndefined();
    const [again] = (await world().claim({}, T0 + 1)).claimed;
    expect([again?.message.id, again?.parkings]).toEqual([second.id, 0]);
    const [late] = (await world().claim({}, T0 + 60_000)).claimed;
    expect([late?.message.id, late?.parkings]).toEqual([first.id, 1]);
    expect(await found()).toEqual([]);
  });

  it('starts a step of a run that sleeps, or waits for its next attempt', async () => {
    const first = await startRun(world(), LATER);
    expect(await makeDue(first)).toBe('due');
    const [claimedFirst] = (await world().claim({}, T0 + 1)).claimed;
    expect(claimedFirst?.message.id).toBe(first.id);
    const retried = retrying(T0, T0 + 60_000, 1);
    await world().settle(first, claimedFirst?.claimToken ?? 0, retried, T0 + 1);
    expect(await makeDue(first, T0 + 2)).toBe('due');
    expect((await world().claim({}, T0 + 2)).claimed).toMatchObject([{ retried: 1 }]);
  });

  it('returns what is impossible: no such message, one of another project, one in flight', async () => {
    const theirs = await world().accept({ ...LATER, projectId: OTHER_PROJECT });
    const { message: running } = await world().acceptClaimed();
    const unknown = world().message().message;
    expect([await makeDue(theirs), await makeDue(unknown), await makeDue(running)]).toEqual([
      'missing',
      'missing',
      'attempting',
    ]);
    expect(await world().store.messages.makeDue({ projectId: PROJECT, id: 'msg_nothing', nowMs: T0 })).toBe('missing');
    expect(await claimed()).toEqual([]);
  });
}
