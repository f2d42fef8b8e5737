import { expect, it } from 'vitest';
import { backlogKey } from '../../../src/engine/lanes/backlog-key.ts';
import type { Message } from '../../../src/engine/model.ts';
import type { FlowControl } from '../../../src/protocol/options/settings.ts';
import { delivered, eachWorld, type OpenStore, PROJECT, T0, type World } from './world.ts';

const A = 'https://a.example';
const B = 'https://b.example';
const BACKLOG_A = backlogKey(PROJECT, A);

/** Messages of flow-control keys whose endpoints are busy, and which may wait for either of the two. */
export function busyOriginsConformance(open: OpenStore): void {
  const world = eachWorld(open);

  function acceptMany(count: number, flowControl: FlowControl, url = A): Promise<Message[]> {
    return Promise.all(Array.from({ length: count }, () => world().accept({ url, settings: { flowControl } })));
  }

  it('lets no more messages of a key wait for a busy origin than could be in flight, and requests no further claim', async () => {
    await acceptMany(20, { key: 'k', parallelism: 3, periodS: 1 });
    const { claimed, waitingBacklogs, nextDueAtMs } = await world().claim({ capacityByOrigin: { [A]: 1 } });
    expect([claimed.length, waitingBacklogs, nextDueAtMs]).toEqual([1, [BACKLOG_A], undefined]);
    expect(await keyOf(world(), 'k')).toMatchObject({ inFlight: 1, waitListSize: 17 });
    await world().claim({ capacityByOrigin: { [A]: 0 } });
    expect(await keyOf(world(), 'k')).toMatchObject({ inFlight: 1, waitListSize: 17 });
  });

  it('counts messages that wait for their origin toward the rate too, also in the next period', async () => {
    await acceptMany(20, { key: 'k', rate: 2, periodS: 60 });
    for (const nowMs of [T0, T0 + 60_000, T0 + 120_000]) {
      const result = await world().claim({ capacityByOrigin: { [A]: 0 } }, nowMs);
      expect([result.claimed.length, result.nextDueAtMs]).toEqual([0, undefined]);
    }
    expect(await world().store.keys.findKey({ projectId: PROJECT, key: 'k', nowMs: T0 + 120_000 })).toMatchObject({
      waitListSize: 18,
      rateCount: 0,
    });
    const result = await world().claim({ due: false, backlogsToServe: [BACKLOG_A] }, T0 + 120_000);
    expect([result.claimed.length, result.nextDueAtMs]).toEqual([2, T0 + 180_000]);
  });

  it('starts no new message of a key before those that wait for their origin', async () => {
    const flowControl = { key: 'k', parallelism: 1, periodS: 1 };
    await acceptMany(1, flowControl);
    await world().claim({ capacityByOrigin: { [A]: 0 } });
    const state = { kind: 'claimed', claimToken: world().number(), worker: 'w1' } as const;
    const late = world().message({ url: B, settings: { flowControl }, state });
    expect(await world().save([late])).toEqual([{ kind: 'accepted', state: 'flow' }]);
    expect(await keyOf(world(), 'k')).toMatchObject({ inFlight: 0, waitListSize: 1 });
  });

  it('releases the next message of a key when one that waits for its origin starts and ends', async () => {
    const [first, second] = await acceptMany(3, { key: 'k', parallelism: 1, periodS: 1 });
    await world().claim({ capacityByOrigin: { [A]: 0 } });
    const { claimed } = await world().claim({ backlogsToServe: [BACKLOG_A] });
    expect(claimed.map(({ message }) => message.key)).toEqual([first?.key]);
    const { message, claimToken } = claimed[0] ?? { message: first as Message, claimToken: 0 };
    await world().settle(message, claimToken, delivered());
    const next = await world().claim();
    expect(next.claimed.map((claim) => claim.message.key)).toEqual([second?.key]);
  });

  it('releases the next message of a key when one that waits for its origin is cancelled', async () => {
    const [first] = await acceptMany(1, { key: 'k', parallelism: 1, periodS: 1 });
    const [second] = await acceptMany(1, { key: 'k', parallelism: 1, periodS: 1 }, B);
    expect((await world().claim({ capacityByOrigin: { [A]: 0 } })).claimed).toEqual([]);
    const due: number[] = [];
    world().store.events.onDue = (dueAtMs) => due.push(dueAtMs);
    expect(await world().store.messages.cancelById({ projectId: PROJECT, ids: [first?.id ?? ''], nowMs: T0 })).toBe(1);
    expect(due).toEqual([T0]);
    expect((await world().claim()).claimed.map(({ message }) => message.key)).toEqual([second?.key]);
  });

  it('releases the next message of a key when the queue of one that waits for its origin is paused', async () => {
    const flowControl = { key: 'k', parallelism: 1, periodS: 1 };
    const inQueue = await world().accept({ url: A, settings: { flowControl, queueName: 'q' } });
    const [other] = await acceptMany(1, flowControl, B);
    await world().claim({ capacityByOrigin: { [A]: 0 } });
    await world().store.queues.setQueuePaused({ projectId: PROJECT, name: 'q', isPaused: true, nowMs: T0 });
    const { claimed } = await world().claim();
    expect(claimed.map(({ message }) => message.key)).toEqual([other?.key]);
    await world().store.queues.setQueuePaused({ projectId: PROJECT, name: 'q', isPaused: false, nowMs: T0 });
    const { message, claimToken } = claimed[0] ?? { message: inQueue, claimToken: 0 };
    await world().settle(message, claimToken, delivered());
    expect((await world().claim()).claimed.map((claim) => claim.message.key)).toEqual([inQueue.key]);
  });

  it('holds back messages that wait for their origin while their key is paused, and starts them when it is resumed', async () => {
    const [first] = await acceptMany(3, { key: 'k', parallelism: 2, periodS: 1 });
    await world().claim({ capacityByOrigin: { [A]: 0 } });
    await world().store.keys.setKeyPaused({ projectId: PROJECT, key: 'k', isPaused: true, nowMs: T0 });
    expect(await world().claim({ backlogsToServe: [BACKLOG_A] })).toMatchObject({ claimed: [], emptied: [BACKLOG_A] });
    expect(await keyOf(world(), 'k')).toMatchObject({ isPaused: true, waitListSize: 3 });
    await world().store.keys.setKeyPaused({ projectId: PROJECT, key: 'k', isPaused: false, nowMs: T0 });
    const { claimed } = await world().claim();
    expect(claimed.map(({ message }) => message.key)[0]).toBe(first?.key);
    expect(claimed).toHaveLength(2);
  });
}

function keyOf(world: World, key: string) {
  return world.store.keys.findKey({ projectId: PROJECT, key, nowMs: T0 });
}
