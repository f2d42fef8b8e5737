import { describe, expect, it } from 'vitest';
import { backlogKey } from '../../../src/engine/lanes/backlog-key.ts';
import type { Change } from '../../../src/engine/model.ts';
import type { FlowControl } from '../../../src/protocol/options/settings.ts';
import { startRun } from './run-world.ts';
import {
  delivered,
  eachWorld,
  lastFailure,
  type MessageOptions,
  type OpenStore,
  OTHER_PROJECT,
  PROJECT,
  retrying,
  settlement,
  T0,
} from './world.ts';

const A = 'https://a.example';
const B = 'https://b.example';
const BUSY = 'https://example.com';

export function lanesConformance(open: OpenStore): void {
  describe('queues', () => queueCases(open));
  describe('flow-control keys', () => keyCases(open));
  describe('the wait list of a project', () => projectCases(open));
}

type Claims = { claimed: { message: { key: number } }[] };
const keysOf = ({ claimed }: Claims): number[] => claimed.map(({ message }) => message.key);

function queueCases(open: OpenStore): void {
  const world = eachWorld(open);
  const inQueue = (options: MessageOptions = {}) => ({ ...options, settings: { queueName: 'q', ...options.settings } });
  const save = (parallelism: number, isPaused = false) =>
    world().store.queues.saveQueue({ projectId: PROJECT, name: 'q', parallelism, isPaused, nowMs: T0 });
  const queue = () => world().store.queues.findQueue({ projectId: PROJECT, name: 'q', nowMs: T0 });
  const handoff = (bytesMax = 1_000) => ({ worker: 'w1', claimToken: world().number(), bytesMax });
  const stateOf = async (id: string, nowMs = T0) =>
    (await world().store.messages.findLive({ projectId: PROJECT, id, nowMs }))?.state;

  it('is created by its first message, with parallelism 1', async () => {
    await world().accept(inQueue());
    expect(await queue()).toEqual({
      name: 'q',
      createdAtMs: T0,
      updatedAtMs: T0,
      parallelism: 1,
      isPaused: false,
      lag: 1,
    });
  });

  it('starts one message at a time in the order of acceptance, whatever their senders propose (P5)', async () => {
    const { message: first, claimToken } = await world().acceptClaimed(inQueue());
    const { message: second } = await world().acceptClaimed(inQueue());
    const third = await world().accept(inQueue());
    expect(await world().statesOf(second)).toEqual(['CREATED']);
    expect(keysOf(await world().claim())).toEqual([]);
    await world().store.messages.settle({ settlement: settlement(first, claimToken, delivered()), nowMs: T0 });
    const next = await world().claim();
    expect(keysOf(next)).toEqual([second.key]);
    expect(keysOf(await world().claim())).toEqual([]);
    await world().store.messages.settle({
      settlement: settlement(second, next.claimed[0]?.claimToken ?? -1, delivered()),
      nowMs: T0,
    });
    expect(keysOf(await world().claim())).toEqual([third.key]);
  });

  it('keeps its permit while a message waits for its retry, and passes it on once the message is dead (P5)', async () => {
    const { message, claimToken } = await world().acceptClaimed(inQueue());
    const behind = await world().accept(inQueue());
    await world().store.messages.settle({
      settlement: settlement(message, claimToken, retrying(T0, T0 + 1_000, 1)),
      nowMs: T0,
    });
    expect(keysOf(await world().claim({}, T0 + 999))).toEqual([]);
    const [again] = (await world().claim({}, T0 + 1_000)).claimed;
    expect(again?.message.key).toBe(message.key);
    await world().store.messages.settle({
      settlement: settlement(message, again?.claimToken ?? -1, lastFailure(T0 + 2_000)),
      nowMs: T0 + 2_000,
    });
    expect(keysOf(await world().claim({}, T0 + 2_000))).toEqual([behind.key]);
  });

  it('starts as many messages as its parallelism, more once that is raised, and interrupts none when it is lowered', async () => {
    await save(2);
    const messages = [];
    for (let index = 0; index < 5; index += 1) messages.push(await world().accept(inQueue()));
    const keys = messages.map(({ key }) => key);
    const first = await world().claim();
    expect(keysOf(first)).toEqual(keys.slice(0, 2));
    await save(3);
    expect(keysOf(await world().claim())).toEqual(keys.slice(2, 3));
    await save(1);
    for (const { message, claimToken } of first.claimed) {
      await world().store.messages.settle({ settlement: settlement(message, claimToken, delivered()), nowMs: T0 });
    }
    expect(keysOf(await world().claim())).toEqual([]);
  });

  it('counts unfinished messages, including those in flight', async () => {
    const { message, claimToken } = await world().acceptClaimed(inQueue());
    await world().accept(inQueue());
    await world().accept(inQueue({ projectId: OTHER_PROJECT }));
    expect((await queue())?.lag).toBe(2);
    await world().store.messages.settle({
      settlement: settlement(message, claimToken, retrying(T0, T0 + 1_000, 1)),
      nowMs: T0,
    });
    expect((await queue())?.lag).toBe(2);
    await world().store.messages.cancelById({ projectId: PROJECT, ids: [message.id], nowMs: T0 });
    expect((await queue())?.lag).toBe(1);
  });

  it('names the message that blocks it while the holders of its permits wait for a later time', async () => {
    await save(2);
    const running = [await world().acceptClaimed(inQueue()), await world().acceptClaimed(inQueue())];
    const behind = await world().accept(inQueue());
    const retry = async (index: number, dueAtMs: number) => {
      const { message, claimToken } = running[index] as NonNullable<(typeof running)[number]>;
      await world().store.messages.settle({
        settlement: settlement(message, claimToken, retrying(T0, dueAtMs, 1)),
        nowMs: T0,
      });
    };
    await retry(0, T0 + 2_000);
    expect((await queue())?.blockedBy).toBeUndefined();
    await retry(1, T0 + 1_000);
    const blockedBy = { messageId: running[1]?.message.id, dueAtMs: T0 + 1_000 };
    expect(await queue()).toMatchObject({ blockedBy });
    expect(await stateOf(behind.id)).toMatchObject({ kind: 'queue', ahead: 2, blockedBy });
    expect(await stateOf(behind.id, T0 + 1_000)).not.toHaveProperty('blockedBy');
  });

  it('starts nothing while it is paused, not even retries, and continues with the earliest unfinished message', async () => {
    const { message: first, claimToken } = await world().acceptClaimed(inQueue());
    expect(
      await world().store.queues.setQueuePaused({ projectId: PROJECT, name: 'q', isPaused: true, nowMs: T0 }),
    ).toBe('saved');
    const { message: second } = await world().acceptClaimed(inQueue());
    await world().store.messages.settle({
      settlement: settlement(first, claimToken, retrying(T0, T0 + 10, 1)),
      nowMs: T0,
    });
    expect(keysOf(await world().claim({}, T0 + 100))).toEqual([]);
    expect(await stateOf(first.id)).toMatchObject({ kind: 'queue', isPaused: true, hasPermit: true, ahead: 0 });
    expect(await stateOf(second.id)).toMatchObject({ kind: 'queue', isPaused: true, hasPermit: false, ahead: 1 });
    await world().store.queues.setQueuePaused({ projectId: PROJECT, name: 'q', isPaused: false, nowMs: T0 + 200 });
    expect(keysOf(await world().claim({}, T0 + 200))).toEqual([first.key]);
  });

  it('notes the due times of messages that it releases, on a resume and when a permit becomes free', async () => {
    const heard: number[] = [];
    world().store.events.onDue = (dueAtMs) => heard.push(dueAtMs);
    const { message, claimToken } = await world().acceptClaimed(inQueue());
    await world().accept(inQueue({ createdAtMs: T0 + 5 }));
    expect(heard).toEqual([]);
    await world().store.messages.settle({ settlement: settlement(message, claimToken, delivered()), nowMs: T0 + 9 });
    expect(heard).toEqual([T0 + 5]);
    await world().store.queues.setQueuePaused({ projectId: PROJECT, name: 'q', isPaused: true, nowMs: T0 + 9 });
    expect(heard).toHaveLength(1);
    await world().store.queues.setQueuePaused({ projectId: PROJECT, name: 'q', isPaused: false, nowMs: T0 + 9 });
    expect(heard).toEqual([T0 + 5, T0 + 5]);
  });

  it('passes the permit of a cancelled message to the next one', async () => {
    await save(1, true);
    const [first, second, third] = [
      await world().accept(inQueue()),
      await world().accept(inQueue()),
      await world().accept(inQueue()),
    ];
    await world().store.queues.setQueuePaused({ projectId: PROJECT, name: 'q', isPaused: false, nowMs: T0 });
    // First one without a permit: its cancel does not release the next one.
    await world().store.messages.cancelById({ projectId: PROJECT, ids: [third.id], nowMs: T0 });
    await world().store.messages.cancelById({ projectId: PROJECT, ids: [first.id], nowMs: T0 });
    expect(keysOf(await world().claim())).toEqual([second.key]);
  });

  it('keeps the permit of a message whose claim was released (P7)', async () => {
    const { message } = await world().acceptClaimed(inQueue());
    await world().accept(inQueue());
    await world().store.messages.releaseAll({ nowMs: T0 + 10 });
    expect(keysOf(await world().claim({}, T0 + 10))).toEqual([message.key]);
  });

  it('hands the slot of a settled message to the next one in the same transaction, if it fits the slot', async () => {
    const { message: first, claimToken } = await world().acceptClaimed(inQueue({ url: A }));
    const second = await world().accept(inQueue({ url: A }));
    const elsewhere = await world().accept(inQueue({ url: B }));
    const taken = handoff();
    const result = await world().store.messages.settle({
      settlement: settlement(first, claimToken, delivered()),
      nowMs: T0 + 3,
      handoff: taken,
    });
    expect(result).toEqual({
      kind: 'saved',
      next: { message: second, retried: 0, claimToken: taken.claimToken, claimedAtMs: T0 + 3, dueAtMs: T0 },
    });
    expect(await world().statesOf(second)).toEqual(['CREATED', 'ACTIVE']);
    const toOther = settlement(second, taken.claimToken, delivered());
    expect(await world().store.messages.settle({ settlement: toOther, nowMs: T0 + 4, handoff: handoff() })).toEqual({
      kind: 'saved',
    });
    expect(keysOf(await world().claim({}, T0 + 4))).toEqual([elsewhere.key]);
  });

  it('notifies no other worker of a message that has taken over a slot, and uses the latest time of the commands of a batch', async () => {
    const { message: first, claimToken } = await world().acceptClaimed(inQueue());
    const second = await world().accept(inQueue({ notBeforeMs: T0 + 5 }));
    const plain = await world().acceptClaimed();
    const heard: number[] = [];
    world().store.events.onDue = (dueAtMs) => heard.push(dueAtMs);
    const [result] = await Promise.all([
      world().store.messages.settle({
        settlement: settlement(first, claimToken, delivered()),
        nowMs: T0 + 5,
        handoff: handoff(),
      }),
      world().store.messages.settle({
        settlement: settlement(plain.message, plain.claimToken, delivered()),
        nowMs: T0,
      }),
    ]);
    expect(result).toMatchObject({ next: { message: second } });
    expect(heard).toEqual([]);
  });

  it('hands no slot to a message that is larger than the slot', async () => {
    const { message, claimToken } = await world().acceptClaimed(inQueue());
    const large = await world().accept(inQueue({ body: new Uint8Array(1_001) }));
    expect(
      await world().store.messages.settle({
        settlement: settlement(message, claimToken, delivered()),
        nowMs: T0,
        handoff: handoff(),
      }),
    ).toEqual({
      kind: 'saved',
    });
    expect(keysOf(await world().claim())).toEqual([large.key]);
  });

  it('is gone when it is deleted: its messages are cancelled in chunks, and a new queue of the same name is another queue', async () => {
    const { message: running } = await world().acceptClaimed(inQueue());
    const waiting = [await world().accept(inQueue()), await world().accept(inQueue()), await world().accept(inQueue())];
    const deleted = await world().store.queues.deleteQueue({ projectId: PROJECT, name: 'q', nowMs: T0 });
    if (!deleted) throw new Error('there was no queue');
    expect(await queue()).toBeUndefined();
    expect(await world().store.queues.deleteQueue({ projectId: PROJECT, name: 'q', nowMs: T0 })).toBeUndefined();
    const { message: fresh } = await world().acceptClaimed(inQueue());
    let pieces = 0;
    while (await world().store.queues.emptyQueue({ ...deleted, count: 2, nowMs: T0 })) pieces += 1;
    expect(pieces).toBe(1);
    for (const message of waiting) {
      expect(await world().statesOf(message)).toEqual(['CREATED', 'CANCEL_REQUESTED', 'CANCELED']);
    }
    expect(await world().statesOf(running)).toEqual(['CREATED', 'ACTIVE', 'CANCEL_REQUESTED']);
    expect(await world().statesOf(fresh)).toEqual(['CREATED', 'ACTIVE']);
    expect((await queue())?.lag).toBe(1);
  });

  it('lets the messages of workflow runs continue without it when it is deleted', async () => {
    const claimToken = world().number();
    const atOnce = { ...inQueue(), state: { kind: 'claimed', claimToken, worker: 'w1' } } as const;
    const running = await startRun(world(), { id: 'running', ...atOnce });
    const waiting = [
      await startRun(world(), { id: 'a', ...inQueue() }),
      await startRun(world(), { id: 'b', ...inQueue() }),
    ];
    const plain = await world().accept(inQueue());
    const deleted = await world().store.queues.deleteQueue({ projectId: PROJECT, name: 'q', nowMs: T0 });
    if (!deleted) throw new Error('there was no queue');
    let pieces = 0;
    while ((await world().store.queues.emptyQueue({ ...deleted, count: 2, nowMs: T0 })) && pieces < 10) pieces += 1;
    expect(pieces).toBeLessThan(10);
    expect(keysOf(await world().claim())).toEqual(waiting.map(({ key }) => key));
    expect((await world().statesOf(plain)).at(-1)).toBe('CANCELED');
    expect(
      await world().store.messages.settle({ settlement: settlement(running, claimToken, delivered()), nowMs: T0 }),
    ).toEqual({
      kind: 'saved',
    });
  });

  it('lets messages of workflow runs wait only for their flow-control key when it is deleted', async () => {
    const settings = { queueName: 'q', flowControl: { key: 'k', parallelism: 1, periodS: 1 } };
    await startRun(world(), { id: 'a', settings });
    const deleted = await world().store.queues.deleteQueue({ projectId: PROJECT, name: 'q', nowMs: T0 });
    if (deleted) await world().store.queues.emptyQueue({ ...deleted, count: 2, nowMs: T0 });
    expect((await world().claim()).claimed).toHaveLength(1);
  });

  it('starts no message of a deleted queue that was never emptied, not even one that has a permit', async () => {
    const { message, claimToken } = await world().acceptClaimed(inQueue());
    await world().store.messages.settle({
      settlement: settlement(message, claimToken, retrying(T0, T0 + 10, 1)),
      nowMs: T0,
    });
    await world().accept(inQueue());
    await world().store.queues.deleteQueue({ projectId: PROJECT, name: 'q', nowMs: T0 + 1 });
    expect(keysOf(await world().claim({}, T0 + 100))).toEqual([]);
    const expiry = {
      logsBeforeMs: 0,
      deadBeforeMs: 0,
      minutesBeforeMs: 0,
      keysUsedBeforeMs: 0,
      nowMs: T0 + 100,
      rowsMax: 100,
    };
    await world().store.retention.dropExpired(expiry);
    expect((await world().statesOf(message)).at(-1)).toBe('CANCELED');
  });

  it('empties a deleted queue although many others wait for attempts in flight', async () => {
    for (let nth = 0; nth < 40; nth += 1) {
      await world().acceptClaimed({ settings: { queueName: `busy-${nth}` } });
      await world().store.queues.deleteQueue({ projectId: PROJECT, name: `busy-${nth}`, nowMs: T0 });
    }
    await world().acceptClaimed(inQueue());
    const waiting = await world().accept(inQueue());
    await world().store.queues.deleteQueue({ projectId: PROJECT, name: 'q', nowMs: T0 });
    const expiry = {
      logsBeforeMs: 0,
      deadBeforeMs: 0,
      minutesBeforeMs: 0,
      keysUsedBeforeMs: 0,
      nowMs: T0,
      rowsMax: 100,
    };
    let pieces = 0;
    while (await world().store.retention.dropExpired(expiry)) pieces += 1;
    expect((await world().statesOf(waiting)).at(-1)).toBe('CANCELED');
    expect(pieces).toBeLessThan(10);
  });

  it('refuses a queue over the limit, but no message of existing queues', async () => {
    const limited = await open({ queuesMax: 1, parallelismMax: 0, messagesPerDayMax: 0, journalBytesMax: 0 });
    try {
      const named = (queueName: string) => world().message({ settings: { queueName } });
      const kindsOf = async (names: string[]) =>
        (await limited.messages.accept({ messages: names.map(named), nowMs: T0 })).map(({ kind }) => kind);
      expect(await kindsOf(['q', 'other', 'q'])).toEqual(['accepted', 'tooManyQueues', 'accepted']);
      expect(
        await limited.queues.saveQueue({
          projectId: PROJECT,
          name: 'other',
          parallelism: 1,
          isPaused: false,
          nowMs: T0,
        }),
      ).toBe('tooManyQueues');
      expect((await limited.queues.listQueues({ projectId: PROJECT, nowMs: T0 })).map(({ name }) => name)).toEqual([
        'q',
      ]);
    } finally {
      await limited.close();
    }
  });
}

function keyCases(open: OpenStore): void {
  const world = eachWorld(open);
  const limited = (limits: Partial<FlowControl>, options: MessageOptions = {}): MessageOptions => ({
    ...options,
    settings: { flowControl: { key: 'k', periodS: 1, ...limits }, ...options.settings },
  });
  const key = (nowMs = T0) => world().store.keys.findKey({ projectId: PROJECT, key: 'k', nowMs });
  const accept = async (count: number, limits: Partial<FlowControl>) => {
    const keys: number[] = [];
    for (let index = 0; index < count; index += 1) keys.push((await world().accept(limited(limits))).key);
    return keys;
  };

  it('never has more attempts in flight than its parallelism, across accept and claim (P4)', async () => {
    const { message, claimToken } = await world().acceptClaimed(limited({ parallelism: 2 }));
    const waiting = await accept(3, { parallelism: 2 });
    expect(keysOf(await world().claim())).toEqual(waiting.slice(0, 1));
    expect(keysOf(await world().claim())).toEqual([]);
    expect(await key()).toMatchObject({ parallelism: 2, inFlight: 2, waitListSize: 2 });
    await world().store.messages.settle({
      settlement: settlement(message, claimToken, retrying(T0, T0 + 10, 1)),
      nowMs: T0,
    });
    expect(keysOf(await world().claim())).toEqual(waiting.slice(1, 2));
  });

  it('never starts more in a period than its rate, retries included, and returns when the next may start', async () => {
    const { message, claimToken } = await world().acceptClaimed(limited({ rate: 2, periodS: 10 }));
    await world().store.messages.settle({
      settlement: settlement(message, claimToken, retrying(T0 + 1, T0 + 2, 1)),
      nowMs: T0 + 1,
    });
    expect(keysOf(await world().claim({}, T0 + 2))).toEqual([message.key]);
    const [next] = await accept(1, { rate: 2, periodS: 10 });
    const full = await world().claim({}, T0 + 9_999);
    expect(keysOf(full)).toEqual([]);
    expect(full.nextDueAtMs).toBe(T0 + 10_000);
    expect(await key(T0 + 9_999)).toMatchObject({ rate: 2, rateCount: 2, periodStartedAtMs: T0 });
    expect(keysOf(await world().claim({}, T0 + 10_000))).toEqual([next]);
    expect(await key(T0 + 10_000)).toMatchObject({ rateCount: 1, periodStartedAtMs: T0 + 10_000 });
  });

  it('starts a window with the first start after the end of the previous window', async () => {
    await world().acceptClaimed(limited({ rate: 1, periodS: 10 }));
    await world().acceptClaimed(limited({ rate: 1, periodS: 10 }, { createdAtMs: T0 + 25_000 }));
    expect(await key(T0 + 25_000)).toMatchObject({ rateCount: 1, periodStartedAtMs: T0 + 25_000 });
  });

  it('queues a new message behind the waiting ones', async () => {
    const waiting = await accept(1, { parallelism: 1 });
    const { message: late } = await world().acceptClaimed(limited({ parallelism: 1 }));
    expect(await world().statesOf(late)).toEqual(['CREATED']);
    expect(keysOf(await world().claim())).toEqual(waiting);
  });

  it('applies the limits of the latest message; a limit that it does not mention is unlimited', async () => {
    await accept(2, { parallelism: 1, rate: 1, periodS: 5 });
    await accept(1, { parallelism: 3 });
    expect(await key()).toMatchObject({ parallelism: 3, periodS: 1 });
    expect((await key())?.rate).toBeUndefined();
    expect((await world().claim()).claimed).toHaveLength(3);
  });

  it('ignores limits of messages for pinned values, and starts the next period when a rate is pinned', async () => {
    await world().acceptClaimed(limited({ rate: 1, periodS: 60 }));
    await accept(3, { rate: 1, periodS: 60 });
    await world().store.keys.pinKey({ projectId: PROJECT, key: 'k', pin: { rate: 2, periodS: 30 }, nowMs: T0 });
    await accept(1, { rate: 9, parallelism: 7 });
    expect(await key()).toMatchObject({ rate: 2, periodS: 30, parallelism: 7, isRatePinned: true, rateCount: 0 });
    expect((await world().claim()).claimed).toHaveLength(2);
    await world().store.keys.unpinKey({ projectId: PROJECT, key: 'k', parallelism: false, rate: true, nowMs: T0 });
    expect(await key()).toMatchObject({ rate: 2, isRatePinned: false });
    await accept(1, { rate: 9 });
    expect(await key()).toMatchObject({ rate: 9, isRatePinned: false });
  });

  it('starts nothing while it is paused, and continues under its limits', async () => {
    await world().store.keys.setKeyPaused({ projectId: PROJECT, key: 'k', isPaused: true, nowMs: T0 });
    const { message } = await world().acceptClaimed(limited({ parallelism: 1 }));
    await accept(1, { parallelism: 1 });
    expect(keysOf(await world().claim({}, T0 + 60_000))).toEqual([]);
    expect(await key()).toMatchObject({ isPaused: true, waitListSize: 2, inFlight: 0 });
    await world().store.keys.setKeyPaused({ projectId: PROJECT, key: 'k', isPaused: false, nowMs: T0 + 60_000 });
    expect(keysOf(await world().claim({}, T0 + 60_000))).toEqual([message.key]);
  });

  it('starts a new period when its rate is reset', async () => {
    await world().acceptClaimed(limited({ rate: 1, periodS: 60 }));
    const waiting = await accept(1, { rate: 1, periodS: 60 });
    expect(keysOf(await world().claim({}, T0 + 5_000))).toEqual([]);
    await world().store.keys.resetKeyRate({ projectId: PROJECT, key: 'k', nowMs: T0 + 5_000 });
    expect(await key(T0 + 5_000)).toMatchObject({ rateCount: 0, periodStartedAtMs: T0 + 5_000 });
    expect(keysOf(await world().claim({}, T0 + 5_000))).toEqual(waiting);
  });

  it('notes when the first waiting message may start, but not if something else must happen first', async () => {
    const heard: number[] = [];
    world().store.events.onDue = (dueAtMs) => heard.push(dueAtMs);
    await world().accept(limited({ rate: 1, periodS: 10 }, { notBeforeMs: T0 + 500 }));
    expect(heard).toEqual([T0 + 500]);
    expect((await world().claim({}, T0 + 500)).claimed).toHaveLength(1);
    await accept(1, { parallelism: 1 });
    expect(heard).toHaveLength(1);
    await accept(1, { rate: 1, periodS: 10, parallelism: 2 });
    expect(heard.at(-1)).toBe(T0 + 500 + 10_000);
  });

  it('serves a delayed message of a key when it is due, and not before', async () => {
    const delayed = await world().accept(limited({ parallelism: 1 }, { notBeforeMs: T0 + 1_000 }));
    const early = await world().claim({}, T0 + 999);
    expect([keysOf(early), early.nextDueAtMs]).toEqual([[], T0 + 1_000]);
    expect(await key(T0 + 999)).toMatchObject({ waitListSize: 0 });
    expect(await key(T0 + 1_000)).toMatchObject({ waitListSize: 1 });
    expect(keysOf(await world().claim({}, T0 + 1_000))).toEqual([delayed.key]);
  });

  it('gives each key its share, so that many messages of one key delay no other key', async () => {
    const crowd = Array.from({ length: 300 }, () => world().message(limited({ parallelism: 200 })));
    await world().store.messages.accept({ messages: crowd, nowMs: T0 });
    const other = await world().accept({ settings: { flowControl: { key: 'other', parallelism: 1, periodS: 1 } } });
    const result = await world().claim({ limit: 10 });
    expect(keysOf(result)).toEqual([...crowd.slice(0, 5).map(({ message }) => message.key), other.key]);
    expect(result.nextDueAtMs).toBe(T0);
  });

  it('gives the unused share of a key to the next one', async () => {
    await accept(1, { parallelism: 9 });
    for (let index = 0; index < 5; index += 1) {
      await world().accept({ settings: { flowControl: { key: 'other', parallelism: 9, periodS: 1 } } });
    }
    expect((await world().claim({ limit: 4 })).claimed).toHaveLength(4);
  });

  it('serves keys in rotation, and lets keys that a full claim did not reach keep their position', async () => {
    const keyByMessage = new Map<number, string>();
    for (const name of ['a', 'a', 'b', 'b', 'c', 'c']) {
      const { key } = await world().accept({ settings: { flowControl: { key: name, parallelism: 9, periodS: 1 } } });
      keyByMessage.set(key, name);
    }
    const served: (string | undefined)[] = [];
    const claimOne = async (afterMs: number, lanesFirst: boolean) => {
      const { claimed } = await world().claim({ limit: 1, lanesFirst }, T0 + afterMs);
      served.push(...claimed.map(({ message }) => keyByMessage.get(message.key)));
    };
    await claimOne(1, true);
    await claimOne(2, true);
    await world().accept();
    await claimOne(3, false);
    await claimOne(4, true);
    await claimOne(5, true);
    expect(served).toEqual(['a', 'b', undefined, 'c', 'a']);
  });

  it('leaves messages for which a claim has no bytes in the wait list', async () => {
    const large = limited({ parallelism: 9 }, { body: new Uint8Array(100) });
    const first = await world().accept(large);
    for (let index = 0; index < 3; index += 1) await world().accept(large);
    const result = await world().claim({ bytesMax: 150 });
    expect([keysOf(result), result.waitingBacklogs]).toEqual([[first.key], [backlogKey(PROJECT, BUSY)]]);
    expect(await key()).toMatchObject({ inFlight: 1, waitListSize: 2 });
  });

  it('returns the earlier of the next due times with and without a key', async () => {
    const nextDueAtMs = async () => (await world().claim()).nextDueAtMs;
    await world().accept({ notBeforeMs: T0 + 100 });
    await world().accept(limited({ parallelism: 1 }, { notBeforeMs: T0 + 50 }));
    expect(await nextDueAtMs()).toBe(T0 + 50);
    await world().accept({ notBeforeMs: T0 + 25 });
    expect(await nextDueAtMs()).toBe(T0 + 25);
  });

  it('no longer counts a released claim, and applies the limits to its message again', async () => {
    const { message } = await world().acceptClaimed(limited({ parallelism: 1, rate: 1, periodS: 10 }));
    await world().store.messages.releaseAll({ nowMs: T0 + 5 });
    expect(await key(T0 + 5)).toMatchObject({ inFlight: 0, waitListSize: 1, rateCount: 1 });
    expect(keysOf(await world().claim({}, T0 + 5))).toEqual([]);
    expect(keysOf(await world().claim({}, T0 + 10_000))).toEqual([message.key]);
  });

  it('ends a window that is more than a period in the future, because the clock must have been set back', async () => {
    await world().acceptClaimed(limited({ rate: 1, periodS: 10 }));
    const { message } = await world().acceptClaimed(limited({ rate: 1, periodS: 10 }, { createdAtMs: T0 - 3_600_000 }));
    expect(await world().statesOf(message)).toEqual(['CREATED', 'ACTIVE']);
  });

  it('takes part in a queue: a message that waits for its key keeps its queue permit', async () => {
    await world().store.keys.setKeyPaused({ projectId: PROJECT, key: 'k', isPaused: true, nowMs: T0 });
    const head = await world().accept(limited({ parallelism: 1 }, { settings: { queueName: 'q' } }));
    await world().accept({ settings: { queueName: 'q' } });
    expect(keysOf(await world().claim())).toEqual([]);
    await world().store.keys.setKeyPaused({ projectId: PROJECT, key: 'k', isPaused: false, nowMs: T0 });
    expect(keysOf(await world().claim())).toEqual([head.key]);
  });

  it('returns a message of a full origin to the wait list of its key, if the key is full when the origin has capacity', async () => {
    const [first, second] = await accept(2, { parallelism: 2 });
    expect((await world().claim({ defaultCapacity: 0 })).waitingBacklogs).toEqual([
      backlogKey(PROJECT, 'https://example.com'),
    ]);
    await world().store.keys.pinKey({ projectId: PROJECT, key: 'k', pin: { parallelism: 1 }, nowMs: T0 });
    const fromBacklog = await world().claim({
      due: false,
      backlogsToServe: [backlogKey(PROJECT, 'https://example.com')],
    });
    expect(keysOf(fromBacklog)).toEqual([first]);
    expect(fromBacklog.emptied).toEqual([backlogKey(PROJECT, 'https://example.com')]);
    expect(await key()).toMatchObject({ inFlight: 1, waitListSize: 1 });
    const [claimed] = fromBacklog.claimed;
    if (claimed)
      await world().store.messages.settle({
        settlement: settlement(claimed.message, claimed.claimToken, delivered()),
        nowMs: T0,
      });
    expect(keysOf(await world().claim())).toEqual([second]);
  });

  it('does not report a backlog as empty when all examined messages went back to their key', async () => {
    const line = backlogKey(PROJECT, BUSY);
    await accept(3, { parallelism: 3 });
    await world().claim({ capacityByOrigin: { [BUSY]: 0 } });
    await world().store.keys.pinKey({ projectId: PROJECT, key: 'k', pin: { parallelism: 0 }, nowMs: T0 });
    const emptied = async () =>
      (await world().claim({ backlogsToServe: [line], capacityByOrigin: { [BUSY]: 1 } })).emptied;
    expect([await emptied(), await emptied()]).toEqual([[], [line]]);
    expect(await key()).toMatchObject({ inFlight: 0, waitListSize: 3 });
  });

  it('with many permits, starts messages elsewhere although many of its messages wait for one busy endpoint', async () => {
    const crowd = Array.from({ length: 1_600 }, () => world().message(limited({ parallelism: 1_500 })));
    await world().store.messages.accept({ messages: crowd, nowMs: T0 });
    for (let round = 0; round < 20; round += 1) await world().claim({ limit: 100, capacityByOrigin: { [BUSY]: 0 } });
    const { message } = await world().acceptClaimed(limited({ parallelism: 1_500 }, { url: `${A}/hook` }));
    expect(await world().statesOf(message)).toEqual(['CREATED', 'ACTIVE']);
  });

  it('lists the keys of a project by name, or those that contain the search text', async () => {
    const flows = ['beta', 'alpha', 'alphabet'].map((name) => ({ key: name, parallelism: 1, periodS: 1 }));
    for (const flowControl of flows) await world().accept({ settings: { flowControl } });
    await world().accept({ projectId: OTHER_PROJECT, settings: { flowControl: { key: 'al', rate: 1, periodS: 1 } } });
    const list = async (search: string, after = '', count = 10) =>
      (await world().store.keys.listKeys({ projectId: PROJECT, search, after, count, nowMs: T0 })).map(
        (each) => each.key,
      );
    expect(await list('')).toEqual(['alpha', 'alphabet', 'beta']);
    expect(await list('lpha', 'alpha')).toEqual(['alphabet']);
    expect(await list('', '', 2)).toEqual(['alpha', 'alphabet']);
    expect(await list('%')).toEqual([]);
  });

  it('is examined for dropping in chunks, and again only a day later when it is still in use', async () => {
    for (let nth = 0; nth < 25; nth += 1)
      await world().store.keys.pinKey({ projectId: PROJECT, key: `pinned-${nth}`, pin: { parallelism: 1 }, nowMs: T0 });
    await world().store.keys.setKeyPaused({ projectId: PROJECT, key: 'old', isPaused: true, nowMs: T0 + 1 });
    await world().store.keys.setKeyPaused({ projectId: PROJECT, key: 'old', isPaused: false, nowMs: T0 + 1 });
    const expiry = {
      logsBeforeMs: 0,
      deadBeforeMs: 0,
      minutesBeforeMs: 0,
      keysUsedBeforeMs: T0 + 2,
      nowMs: T0 + 100,
      rowsMax: 10,
    };
    const pieces = async () => {
      let count = 1;
      while (await world().store.retention.dropExpired(expiry)) count += 1;
      return count;
    };
    expect([await pieces(), await pieces()]).toEqual([3, 1]);
    expect(await world().store.keys.findKey({ projectId: PROJECT, key: 'old', nowMs: T0 })).toBeUndefined();
    expect(await world().store.keys.findKey({ projectId: PROJECT, key: 'pinned-24', nowMs: T0 })).toBeDefined();
  });

  it('is dropped once it is unused for long, unless it has messages or settings', async () => {
    const { message, claimToken } = await world().acceptClaimed(limited({ parallelism: 1 }));
    await world().store.keys.setKeyPaused({ projectId: PROJECT, key: 'paused', isPaused: true, nowMs: T0 });
    await world().store.keys.pinKey({ projectId: PROJECT, key: 'pinned', pin: { parallelism: 1 }, nowMs: T0 });
    const names = async (nowMs: number) => {
      const limits = {
        logsBeforeMs: 0,
        deadBeforeMs: 0,
        minutesBeforeMs: 0,
        keysUsedBeforeMs: nowMs,
        nowMs,
        rowsMax: 100,
      };
      await world().store.retention.dropExpired(limits);
      return (
        await world().store.keys.listKeys({ projectId: PROJECT, search: '', after: '', count: 10, nowMs: T0 })
      ).map((each) => each.key);
    };
    expect(await names(T0 + 1)).toEqual(['k', 'paused', 'pinned']);
    await world().store.messages.settle({ settlement: settlement(message, claimToken, delivered()), nowMs: T0 });
    expect(await names(T0 + 1)).toEqual(['k', 'paused', 'pinned']);
    expect(await names(T0 + 2)).toEqual(['paused', 'pinned']);
  });
}

function projectCases(open: OpenStore): void {
  const world = eachWorld(() => open({ queuesMax: 0, parallelismMax: 1, messagesPerDayMax: 0, journalBytesMax: 0 }));

  it('lets messages over the limit of their own project wait, and counts attempts in flight', async () => {
    await world().acceptClaimed();
    const { message: held } = await world().acceptClaimed();
    const { message: theirs } = await world().acceptClaimed({ projectId: OTHER_PROJECT });
    expect(await world().statesOf(held)).toEqual(['CREATED']);
    expect(await world().statesOf(theirs)).toEqual(['CREATED', 'ACTIVE']);
    expect(await world().store.keys.countInFlight({ projectId: PROJECT })).toBe(1);
    expect((await world().store.messages.findLive({ projectId: PROJECT, id: held.id, nowMs: T0 }))?.state.kind).toBe(
      'project',
    );
  });

  it('releases the first waiting message when an attempt ends, and queues new ones behind the others', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    const [{ message: second }, { message: third }] = [await world().acceptClaimed(), await world().acceptClaimed()];
    await world().store.messages.settle({ settlement: settlement(message, claimToken, delivered()), nowMs: T0 + 1 });
    const { message: late } = await world().acceptClaimed({ createdAtMs: T0 + 1 });
    expect(await world().statesOf(late)).toEqual(['CREATED']);
    const [claimed] = (await world().claim({}, T0 + 1)).claimed;
    expect(claimed?.message.key).toBe(second.key);
    await world().store.messages.settle({
      settlement: settlement(second, claimed?.claimToken ?? -1, delivered()),
      nowMs: T0 + 2,
    });
    expect(keysOf(await world().claim({}, T0 + 2))).toEqual([third.key]);
  });

  it('releases the next message when the released one is cancelled before it starts', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    const [{ message: second }, { message: third }] = [await world().acceptClaimed(), await world().acceptClaimed()];
    await world().store.messages.settle({ settlement: settlement(message, claimToken, delivered()), nowMs: T0 });
    await world().store.messages.cancelById({ projectId: PROJECT, ids: [second.id], nowMs: T0 });
    expect(keysOf(await world().claim())).toEqual([third.key]);
  });

  it('releases the next message when the cancel of an attempt takes effect', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    const { message: second } = await world().acceptClaimed();
    await world().store.messages.cancelById({ projectId: PROJECT, ids: [message.id], nowMs: T0 });
    const changeIfCancelRequested: Change = { next: { kind: 'finished' }, events: [{ atMs: T0, state: 'CANCELED' }] };
    const retry = settlement(message, claimToken, retrying(T0, T0 + 60_000, 1));
    await world().store.messages.settle({ settlement: { ...retry, changeIfCancelRequested }, nowMs: T0 });
    expect(keysOf(await world().claim())).toEqual([second.key]);
  });

  it('releases the next message of a key when the released one is cancelled while it waits for the key', async () => {
    const settings = { flowControl: { key: 'k', parallelism: 1, periodS: 1 } };
    const { message, claimToken } = await world().acceptClaimed();
    const { message: second } = await world().acceptClaimed({ settings });
    const { message: third } = await world().acceptClaimed({ settings });
    await world().store.messages.cancelById({ projectId: PROJECT, ids: [second.id], nowMs: T0 });
    await world().store.messages.settle({ settlement: settlement(message, claimToken, delivered()), nowMs: T0 });
    expect(keysOf(await world().claim())).toEqual([third.key]);
  });

  it('releases the next message when the key of the released one has no capacity, and makes a claim due', async () => {
    const flowControl = { key: 'k', parallelism: 1, periodS: 1 };
    const { message, claimToken } = await world().acceptClaimed();
    const { message: second } = await world().acceptClaimed({ settings: { flowControl } });
    const { message: third } = await world().acceptClaimed();
    await world().store.keys.setKeyPaused({ projectId: PROJECT, key: 'k', isPaused: true, nowMs: T0 });
    const heard: number[] = [];
    world().store.events.onDue = (dueAtMs) => heard.push(dueAtMs);
    await world().store.messages.settle({ settlement: settlement(message, claimToken, delivered()), nowMs: T0 + 1 });
    expect(heard).toEqual([T0 + 1]);
    expect((await world().store.messages.findLive({ projectId: PROJECT, id: second.id, nowMs: T0 }))?.state.kind).toBe(
      'flow',
    );
    expect(keysOf(await world().claim({}, T0 + 1))).toEqual([third.key]);
  });

  it("moves messages of a backlog to the project's wait list, when the origin has capacity and the project has none", async () => {
    const inBacklog = await world().accept({ state: { kind: 'origin', dueAtMs: T0 } });
    const { message: running, claimToken } = await world().acceptClaimed();
    const backlogsToServe = [backlogKey(PROJECT, BUSY)];
    const result = await world().claim({ due: false, backlogsToServe });
    expect([keysOf(result), result.emptied]).toEqual([[], backlogsToServe]);
    expect(
      (await world().store.messages.findLive({ projectId: PROJECT, id: inBacklog.id, nowMs: T0 }))?.state.kind,
    ).toBe('project');
    await world().store.messages.settle({ settlement: settlement(running, claimToken, delivered()), nowMs: T0 });
    expect(keysOf(await world().claim())).toEqual([inBacklog.key]);
  });

  it('hands no slot over within a lane while other messages of the project wait', async () => {
    const flowControl = { key: 'k', parallelism: 1, periodS: 1 };
    const { message, claimToken } = await world().acceptClaimed({ settings: { flowControl } });
    const { message: other } = await world().acceptClaimed();
    await world().acceptClaimed({ settings: { flowControl } });
    const handoff = { worker: 'w1', claimToken: world().number(), bytesMax: 1_000 };
    const result = await world().store.messages.settle({
      settlement: settlement(message, claimToken, delivered()),
      nowMs: T0,
      handoff,
    });
    expect(result).toEqual({ kind: 'saved' });
    expect(keysOf(await world().claim())).toEqual([other.key]);
  });
}
