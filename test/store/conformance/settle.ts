import { expect, it } from 'vitest';
import type { Change, Message } from '../../../src/engine/model.ts';
import {
  delivered,
  eachWorld,
  lastFailure,
  type OpenStore,
  OTHER_PROJECT,
  PROJECT,
  retrying,
  settlement,
  T0,
} from './world.ts';

export function settleConformance(open: OpenStore): void {
  const world = eachWorld(open);

  it('removes a delivered message and logs it, once', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    const decision = settlement(message, claimToken, delivered(T0 + 5));
    const results = await Promise.all([
      world().store.messages.settle({ settlement: decision, nowMs: T0 }),
      world().store.messages.settle({ settlement: decision, nowMs: T0 }),
    ]);
    expect(results.map(({ kind }) => kind).toSorted()).toEqual(['saved', 'stale']);
    expect(await world().store.messages.settle({ settlement: decision, nowMs: T0 })).toMatchObject({ kind: 'stale' });
    expect(await world().statesOf(message)).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
  });

  it('keeps the status of a delivery in its log entry, and has none for entries of a program without it', async () => {
    const claimed = await world().acceptClaimed();
    const events = [{ atMs: T0 + 5, state: 'DELIVERED', responseStatus: 204 } as const];
    const change = { ...delivered(), events };
    await world().settle(claimed.message, claimed.claimToken, change);
    const other = await world().acceptClaimed();
    await world().settle(other.message, other.claimToken, delivered(T0 + 5));
    const { logs } = world().store;
    const page = { count: 10, order: 'earliestFirst' } as const;
    const ofProject = await logs.listLogs({ projectId: PROJECT, filter: { state: ['DELIVERED'] }, page });
    expect(ofProject.items.map(({ responseStatus }) => responseStatus)).toEqual([204, undefined]);
    const filter = { messageId: [claimed.message.id] };
    const ofMessage = await logs.listLogs({ projectId: PROJECT, filter, page });
    expect(ofMessage.items.map(({ responseStatus }) => responseStatus)).toEqual([undefined, undefined, 204]);
    const live = await logs.listLogsAfter({
      ...{ projectId: PROJECT, after: { timeMs: T0 + 4, n: -1 }, toMs: T0 + 5, except: [], count: 10 },
    });
    expect(live.map(({ responseStatus }) => responseStatus)).toEqual([204, undefined]);
  });

  it('keeps a delivered message readable for its grace time and no longer', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    await world().settle(message, claimToken, delivered(T0 + 5));
    expect(await world().store.messages.find({ projectId: PROJECT, id: message.id, deliveredSinceMs: T0 + 5 })).toEqual(
      message,
    );
    expect(
      await world().store.messages.find({ projectId: PROJECT, id: message.id, deliveredSinceMs: T0 + 6 }),
    ).toBeUndefined();
  });

  it('refuses a result from an attempt whose message was claimed again (P6)', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    await world().store.messages.release({
      claims: [{ key: message.key, projectId: message.projectId, claimToken }],
      nowMs: T0,
    });
    const [anew] = (await world().claim()).claimed;
    expect(await world().settle(message, claimToken, delivered())).toMatchObject({
      kind: 'stale',
    });
    expect(await world().statesOf(message)).toEqual(['CREATED', 'ACTIVE', 'ACTIVE']);
    expect(await world().settle(message, anew?.claimToken ?? -1, delivered())).toMatchObject({
      kind: 'saved',
    });
  });

  it('refuses a result for a message of another project', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    const decision = { ...settlement(message, claimToken, delivered()), projectId: OTHER_PROJECT };
    expect(await world().store.messages.settle({ settlement: decision, nowMs: T0 })).toMatchObject({ kind: 'stale' });
  });

  it('lets a retry wait until it is due, with its count and its error', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    await world().settle(message, claimToken, retrying(T0 + 5, T0 + 1_000, 1));
    expect((await world().claim({}, T0 + 999)).nextDueAtMs).toBe(T0 + 1_000);
    const [again] = (await world().claim({}, T0 + 1_000)).claimed;
    expect(again).toMatchObject({ message, retried: 1, claimedAtMs: T0 + 1_000 });
    expect(again?.claimToken).not.toBe(claimToken);
    const logs = await world().logsOf(message);
    expect(logs.map(({ state }) => state)).toEqual(['CREATED', 'ACTIVE', 'ERROR', 'RETRY', 'ACTIVE']);
    expect(logs[2]?.detail).toEqual({ error: 'connection refused', nextDeliveryTimeMs: T0 + 1_000 });
  });

  it('moves a dead message into the DLQ with its response', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    const change = lastFailure(T0 + 7, 503);
    expect(await world().settle(message, claimToken, change)).toMatchObject({
      kind: 'saved',
    });
    expect(await world().find(message)).toBeUndefined();
    const dlqId = `${T0 + 7}-${message.key}`;
    expect(await world().store.dead.findDead({ projectId: PROJECT, dlqId })).toEqual({
      dlqId,
      message,
      deadLetter: change.deadLetter,
    });
    const logs = await world().logsOf(message);
    expect(logs.map(({ state }) => state)).toEqual(['CREATED', 'ACTIVE', 'ERROR', 'FAILED']);
    expect(logs[2]?.detail).toEqual(change.events[0]?.detail);
  });

  it('saves the alternative decision when a cancel was requested since', async () => {
    const canceled: Change = {
      next: { kind: 'finished' },
      events: [
        { atMs: T0 + 5, state: 'ERROR', detail: { error: 'e' } },
        { atMs: T0 + 5, state: 'CANCELED' },
      ],
    };
    const { message, claimToken } = await world().acceptClaimed();
    const { message: kept, claimToken: keptToken } = await world().acceptClaimed();
    await world().store.messages.cancelById({ projectId: PROJECT, ids: [message.id], nowMs: T0 + 1 });
    const change = retrying(T0 + 5, T0 + 1_000, 1);
    const settle = (of: Message, token: number) =>
      world().store.messages.settle({
        settlement: { ...settlement(of, token, change), changeIfCancelRequested: canceled },
        nowMs: T0,
      });
    expect(await settle(message, claimToken)).toEqual({ kind: 'saved', isCancelled: true });
    expect(await settle(kept, keptToken)).toEqual({ kind: 'saved' });
    expect(await world().statesOf(message)).toEqual(['CREATED', 'ACTIVE', 'CANCEL_REQUESTED', 'ERROR', 'CANCELED']);
    expect(await world().find(message)).toBeUndefined();
    expect(await world().statesOf(kept)).toEqual(['CREATED', 'ACTIVE', 'ERROR', 'RETRY']);
  });

  it('delivers a message although a cancel was requested, when the endpoint accepted it', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    await world().store.messages.cancelById({ projectId: PROJECT, ids: [message.id], nowMs: T0 + 1 });
    expect(await world().settle(message, claimToken, delivered(T0 + 2))).toMatchObject({
      kind: 'saved',
    });
    expect(await world().statesOf(message)).toEqual(['CREATED', 'ACTIVE', 'CANCEL_REQUESTED', 'DELIVERED']);
  });

  it('never logs an event before the start of its attempt, whatever the clock shows', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    await world().settle(message, claimToken, delivered(T0 - 1_000), T0 - 1_000);
    expect((await world().logsOf(message)).map(({ atMs }) => atMs)).toEqual([T0, T0, T0]);
  });

  it('never logs an event before the previous one, whatever the clock shows', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    await world().store.messages.cancelById({ projectId: PROJECT, ids: [message.id], nowMs: T0 + 500 });
    await world().settle(message, claimToken, delivered(T0 - 1_000));
    expect((await world().logsOf(message)).map(({ atMs }) => atMs)).toEqual([T0, T0, T0 + 500, T0 + 500]);
  });
}
