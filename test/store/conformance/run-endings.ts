import { describe, expect, it } from 'vitest';
import { backlogKey } from '../../../src/engine/lanes/backlog-key.ts';
import type { Change, Message, NewMessage, RunEnding, Settlement } from '../../../src/engine/model.ts';
import {
  activeRun,
  append,
  appended,
  ending,
  invoked,
  journalOf,
  NO_LIMITS,
  newRunMessage,
  runLogOf,
  startRun,
  waiter,
} from './run-world.ts';
import {
  bytes,
  delivered,
  eachWorld,
  lastFailure,
  type MessageOptions,
  type OpenStore,
  PROJECT,
  retrying,
  settlement,
  T0,
} from './world.ts';

/** The end of a run happens once, with its remaining messages and those that follow, in one transaction (P3). */
export function runEndingsConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const end = async (first: Message, options: Partial<RunEnding> = {}, follows: NewMessage[] = []) => {
    const [result] = await world().store.runs.endRuns({
      endings: [{ ending: ending(first, options), follows }],
      nowMs: T0,
    });
    return result;
  };

  /** A run whose first message is in flight. */
  async function beginClaimed(id = 'r'): Promise<{ first: Message; claimToken: number }> {
    const claimToken = world().number();
    return { first: await startRun(world(), { id, state: { kind: 'claimed', claimToken, worker: 'w1' } }), claimToken };
  }

  const cancelled: Change = { next: { kind: 'finished' }, events: [{ atMs: T0, state: 'CANCELED' }] };

  it('ends a run, with its result', async () => {
    const first = await startRun(world());
    expect(await end(first, { response: bytes('"done"'), atMs: T0 + 7 })).toEqual({ kind: 'ended', follows: [] });
    expect(await world().store.runs.findActiveRun({ projectId: PROJECT, id: 'r' })).toBeUndefined();
    expect(await world().store.runs.findRun({ projectId: PROJECT, key: first.key })).toMatchObject({
      state: 'RUN_SUCCESS',
    });
    const page = { count: 10, order: 'latestFirst' } as const;
    const [event] = (
      await world().store.runLogs.listRunEvents({ projectId: PROJECT, filter: { state: ['RUN_SUCCESS'] }, page })
    ).items;
    expect(event).toMatchObject({ atMs: T0 + 7, run: { id: 'r', response: bytes('"done"') } });
  });

  it('happens once, and not to a run that never existed', async () => {
    const first = await startRun(world());
    const results = await Promise.all([end(first), end(first, { state: 'RUN_CANCELED' })]);
    expect(results).toEqual([{ kind: 'ended', follows: [] }, { kind: 'over' }]);
    expect(await end(first)).toEqual({ kind: 'over' });
    expect(await end({ ...first, key: world().number() })).toEqual({ kind: 'over' });
    expect((await runLogOf(world())).filter((event) => event.startsWith('RUN_'))).toEqual([
      'RUN_STARTED',
      'RUN_SUCCESS',
    ]);
  });

  it('changes nothing when the run has another version', async () => {
    const first = await startRun(world());
    const follow = world().message();
    expect(await end(first, { runVersion: 2 }, [follow])).toEqual({ kind: 'changed' });
    expect(await activeRun(world())).toMatchObject({ key: first.key });
    expect(await world().find(follow.message)).toBeUndefined();
  });

  it('is refused when the caller does not know a new invoker of the run', async () => {
    const child = await startRun(world(), { id: 'child' });
    const parent = await startRun(world(), { id: 'parent' });
    await world().save([invoked(world(), parent, { id: 'child' })]);
    expect(await end(child)).toEqual({ kind: 'changed' });
    expect(await end(child, { runVersion: 2 })).toEqual({ kind: 'ended', follows: [] });
  });

  it('returns a result for each run of a command, in order', async () => {
    const [one, other] = [await startRun(world()), await startRun(world(), { id: 'other' })];
    const follows = [[world().message()], [], [world().message(), world().message()]];
    const endings = [ending(one), ending(one), ending(other)].map((each, index) => ({
      ending: each,
      follows: follows[index] ?? [],
    }));
    const waiting = { state: 'due' };
    expect(await world().store.runs.endRuns({ endings, nowMs: T0 })).toEqual([
      { kind: 'ended', follows: [waiting] },
      { kind: 'over' },
      { kind: 'ended', follows: [waiting, waiting] },
    ]);
  });

  it('gives the result to the parent, if the parent is still active', async () => {
    const [parent, over] = [await startRun(world(), { id: 'parent' }), await startRun(world(), { id: 'over' })];
    const child = await startRun(world(), { id: 'child' });
    await end(over);
    const follows = [appended(world(), parent, { body: bytes('result') }), appended(world(), over)];
    const saved = { state: 'due', journal: { position: 1, bytes: 30 } };
    expect(await end(child, {}, follows)).toEqual({ kind: 'ended', follows: [saved, { state: 'dropped' }] });
    expect(await journalOf(world(), parent)).toEqual(['0 step', '1 step result']);
  });

  it('drops messages for the journal of a run that ends with them', async () => {
    const [parent, child] = [await startRun(world(), { id: 'parent' }), await startRun(world(), { id: 'child' })];
    const result = appended(world(), parent);
    const endings = [
      { ending: ending(child), follows: [result] },
      { ending: ending(parent), follows: [] },
    ];
    expect(await world().store.runs.endRuns({ endings, nowMs: T0 })).toMatchObject([
      { follows: [{ state: 'dropped' }] },
      {},
    ]);
  });

  describe('the remaining messages of a run', () => {
    it('are cancelled with the run: waiting ones at once, which is logged after the end', async () => {
      const first = await startRun(world());
      expect(await end(first, { state: 'RUN_CANCELED' })).toMatchObject({ kind: 'ended' });
      expect((await world().claim()).claimed).toEqual([]);
      expect(await runLogOf(world())).toEqual([
        'RUN_STARTED',
        `CREATED ${first.key}`,
        'RUN_CANCELED',
        `CANCEL_REQUESTED ${first.key}`,
        `CANCELED ${first.key}`,
      ]);
    });

    it.each(['RUN_SUCCESS', 'RUN_FAILED'] as const)(
      'are cancelled with %s, although nobody requested it',
      async (state) => {
        const { first, claimToken } = await beginClaimed();
        const step = appended(world(), first, { notBeforeMs: T0 + 60_000 });
        await world().save([step]);
        await end(first, { state });
        expect((await world().claim({}, T0 + 60_000)).claimed).toEqual([]);
        const change: Settlement = {
          ...settlement(first, claimToken, retrying(T0, T0 + 1_000, 1)),
          changeIfCancelRequested: cancelled,
        };
        expect(await world().store.messages.settle({ settlement: change, nowMs: T0 })).toEqual({
          kind: 'saved',
          isCancelled: true,
        });
        expect(await runLogOf(world())).toEqual([
          'RUN_STARTED',
          `CREATED ${first.key}`,
          `ACTIVE ${first.key}`,
          `CREATED ${step.message.key}`,
          state,
          `CANCELED ${step.message.key}`,
          `CANCELED ${first.key}`,
        ]);
      },
    );

    it('are marked when they are in flight and the run is cancelled', async () => {
      const { first, claimToken } = await beginClaimed();
      await end(first, { state: 'RUN_CANCELED' });
      expect((await runLogOf(world())).slice(-2)).toEqual(['RUN_CANCELED', `CANCEL_REQUESTED ${first.key}`]);
      const change = { ...settlement(first, claimToken, delivered()), changeIfCancelRequested: cancelled };
      expect(await world().store.messages.settle({ settlement: change, nowMs: T0 })).toEqual({
        kind: 'saved',
        isCancelled: true,
      });
      expect((await runLogOf(world())).at(-1)).toBe(`CANCELED ${first.key}`);
    });

    it('are not retried when the attempt in flight is interrupted', async () => {
      const { first, claimToken } = await beginClaimed();
      await end(first);
      await world().store.messages.release({
        claims: [{ key: first.key, projectId: first.projectId, claimToken }],
        nowMs: T0,
      });
      expect((await world().claim()).claimed).toEqual([]);
      expect((await runLogOf(world())).at(-1)).toBe(`CANCELED ${first.key}`);
    });

    it('let the next message of their flow-control key start', async () => {
      const settings = { flowControl: { key: 'k', parallelism: 1, periodS: 1 } };
      const first = await startRun(world(), { settings });
      const plain = await world().accept({ settings });
      expect((await world().claim({ limit: 1, capacityByOrigin: { [first.origin]: 0 } })).claimed).toEqual([]);
      await end(first);
      expect((await world().claim()).claimed.map(({ message }) => message.key)).toEqual([plain.key]);
    });

    it('are removed with waiters and pending events, and those of other runs are not', async () => {
      const [first, other] = [await startRun(world()), await startRun(world(), { id: 'other' })];
      for (const run of [first, other]) {
        expect(
          await world().store.waiters.addWaiter({ waiter: waiter(world(), run), taken: undefined, nowMs: T0 }),
        ).toEqual({
          kind: 'registered',
        });
        const pendingEvent = { key: world().number(), body: bytes('m') };
        expect(
          await world().store.waiters.savePendingEvent({
            projectId: PROJECT,
            runKey: run.key,
            eventId: 'later',
            ...pendingEvent,
            limits: {
              events: 10,
              bytes: 1_000,
            },
          }),
        ).toBe('saved');
      }
      await end(first);
      const waiters = await world().store.waiters.listWaiters({ projectId: PROJECT, eventId: 'e', count: 10 });
      expect(waiters.map(({ record }) => record.settings.run?.id)).toEqual(['other']);
      expect(await world().store.waiters.nextPendingEvent({ runKey: first.key, eventId: 'later' })).toBeUndefined();
      expect(await world().store.waiters.nextPendingEvent({ runKey: other.key, eventId: 'later' })).toBeDefined();
    });

    it('do not include messages of other runs or plain messages', async () => {
      const first = await startRun(world());
      const other = await startRun(world(), { id: 'other' });
      const plain = await world().accept();
      await end(first, { state: 'RUN_CANCELED' });
      expect((await world().claim()).claimed.map(({ message }) => message.key)).toEqual([other.key, plain.key]);
    });
  });

  describe('with a dead message', () => {
    const failing = (first: Message, options: Partial<RunEnding> = {}): Change => ({
      ...lastFailure(T0),
      ending: ending(first, { state: 'RUN_FAILED', ...options }),
    });

    it('ends the run in the same transaction, names its DLQ entry and drops the rest', async () => {
      const { first, claimToken } = await beginClaimed();
      const step = appended(world(), first);
      await world().save([step]);
      expect(await world().settle(first, claimToken, failing(first))).toEqual({
        kind: 'saved',
      });
      expect(await world().store.runs.findRun({ projectId: PROJECT, key: first.key })).toMatchObject({
        state: 'RUN_FAILED',
      });
      expect(await runLogOf(world())).toEqual([
        'RUN_STARTED',
        `CREATED ${first.key}`,
        `ACTIVE ${first.key}`,
        `CREATED ${step.message.key}`,
        `ERROR ${first.key}`,
        `FAILED ${first.key}`,
        'RUN_FAILED',
        `CANCELED ${step.message.key}`,
      ]);
      const page = { count: 10, order: 'latestFirst' } as const;
      const [event] = (
        await world().store.runLogs.listRunEvents({ projectId: PROJECT, filter: { state: ['RUN_FAILED'] }, page })
      ).items;
      expect(event?.run.dlqId).toBe(`${T0}-${first.key}`);
      expect((await world().store.dead.listDead({ projectId: PROJECT, filter: {}, page })).items).toEqual([]);
    });

    it('saves the messages that follow: the failure callback is sent, although the run has ended', async () => {
      const { first, claimToken } = await beginClaimed();
      const parent = await startRun(world(), { id: 'parent' });
      const { entry: _entry, ...callback } = appended(world(), first, { callType: 'failureCall' });
      const result = appended(world(), parent);
      const change = { ...failing(first, { failureCallbackKey: callback.message.key }), follows: [callback, result] };
      const settled = await world().settle(first, claimToken, change);
      expect(settled).toMatchObject({ follows: [{ state: 'due' }, { journal: { position: 1 } }] });
      const { claimed } = await world().claim();
      expect(claimed.map(({ message }) => message.key)).toContain(callback.message.key);
      const token = claimed.find(({ message }) => message.key === callback.message.key)?.claimToken ?? 0;
      const told: Change = { ...delivered(), failureCallback: 'success' };
      expect(await world().settle(callback.message, token, told)).toEqual({
        kind: 'saved',
      });
      expect((await runLogOf(world())).at(-1)).toBe(`DELIVERED ${callback.message.key}`);
    });

    it('writes nothing when the run has ended or has another version, and does not affect others of the batch', async () => {
      const { first, claimToken } = await beginClaimed();
      const plain = await world().acceptClaimed();
      const [refused, saved] = await Promise.all([
        world().settle(first, claimToken, failing(first, { runVersion: 2 })),
        world().settle(plain.message, plain.claimToken, delivered()),
      ]);
      expect([refused, saved]).toEqual([{ kind: 'runChanged' }, { kind: 'saved' }]);
      expect(await runLogOf(world())).toEqual(['RUN_STARTED', `CREATED ${first.key}`, `ACTIVE ${first.key}`]);
      expect(await activeRun(world())).toMatchObject({ key: first.key });
      expect(await world().settle(first, claimToken, failing(first))).toEqual({
        kind: 'saved',
      });
    });

    it('is done by one of two concurrent failures; the other learns that its message was cancelled', async () => {
      const { first, claimToken } = await beginClaimed();
      const otherToken = world().number();
      const other = appended(world(), first, { state: { kind: 'claimed', claimToken: otherToken, worker: 'w1' } });
      await world().save([other]);
      const second = { ...settlement(other.message, otherToken, failing(first)), changeIfCancelRequested: cancelled };
      const results = await Promise.all([
        world().settle(first, claimToken, failing(first)),
        world().store.messages.settle({ settlement: second, nowMs: T0 }),
      ]);
      expect(results).toEqual([{ kind: 'saved' }, { kind: 'runChanged' }]);
      expect(await world().store.messages.settle({ settlement: second, nowMs: T0 })).toEqual({
        kind: 'saved',
        isCancelled: true,
      });
      expect((await runLogOf(world())).slice(-2)).toEqual(['RUN_FAILED', `CANCELED ${other.message.key}`]);
    });

    it('ends nothing when a cancel has replaced the failure', async () => {
      const { first, claimToken } = await beginClaimed();
      await end(first, { state: 'RUN_CANCELED' });
      const change = { ...settlement(first, claimToken, failing(first)), changeIfCancelRequested: cancelled };
      expect(await world().store.messages.settle({ settlement: change, nowMs: T0 })).toEqual({
        kind: 'saved',
        isCancelled: true,
      });
      expect(await world().store.runs.findRun({ projectId: PROJECT, key: first.key })).toMatchObject({
        state: 'RUN_CANCELED',
      });
    });
  });

  describe('with more messages than one transaction cancels', () => {
    const small = eachWorld(() => open({ ...NO_LIMITS, cancelledTogetherMax: 2 }));
    const store = () => small().store;
    const endings = (first: Message, state: RunEnding['state']) => [{ ending: ending(first, { state }), follows: [] }];

    /** A run with `count` waiting messages, including the first one. */
    async function beginWith(count: number, options: MessageOptions = {}): Promise<Message[]> {
      const one = await startRun(small(), options);
      const others = Array.from({ length: count - 1 }, (_, index) =>
        appended(small(), one, { ...options, entry: { entryKey: `s${index + 1}` } }),
      );
      await store().messages.accept({ messages: others, nowMs: T0 });
      return [one, ...others.map(({ message }) => message)];
    }

    /** Cancels all remaining messages; returns the number of chunks. */
    async function cancelRest(): Promise<number> {
      for (let pieces = 1; ; pieces += 1)
        if ((await store().runs.cancelRemaining({ nowMs: T0 })) !== 'more') return pieces;
    }

    it('ends at once, and cancels the others in chunks', async () => {
      const [first, ...others] = await beginWith(6);
      const left = { kind: 'ended', follows: [], isMoreLeft: true };
      expect(await store().runs.endRuns({ endings: endings(first as Message, 'RUN_CANCELED'), nowMs: T0 })).toEqual([
        left,
      ]);
      expect(await store().runs.findActiveRun({ projectId: PROJECT, id: 'r' })).toBeUndefined();
      const cancelled = async () => (await runLogOf(small())).filter((event) => event.startsWith('CANCELED'));
      expect(await cancelled()).toHaveLength(2);
      expect(await cancelRest()).toBe(2);
      expect((await cancelled()).toSorted()).toEqual(
        [first as Message, ...others].map(({ key }) => `CANCELED ${key}`).toSorted(),
      );
      expect((await runLogOf(small())).filter((event) => event.startsWith('CANCEL_REQUESTED'))).toHaveLength(6);
      expect(await store().runs.cancelRemaining({ nowMs: T0 })).toBe(Infinity);
    });

    it('is reported with each heartbeat until no messages are left', async () => {
      const alive = { worker: 'w', timeoutMs: 60_000, isLeaving: false, accountsVersion: 0 };
      const [first] = await beginWith(5);
      expect(await store().workers.heartbeat(alive)).toMatchObject({ hasEndedRun: false });
      await store().runs.endRuns({ endings: endings(first as Message, 'RUN_CANCELED'), nowMs: T0 });
      expect(await store().workers.heartbeat(alive)).toMatchObject({ hasEndedRun: true });
      await cancelRest();
      expect(await store().workers.heartbeat(alive)).toMatchObject({ hasEndedRun: false });
    });

    it('logs no cancel request when there was none', async () => {
      const [first] = await beginWith(5);
      await store().runs.endRuns({ endings: endings(first as Message, 'RUN_SUCCESS'), nowMs: T0 });
      await cancelRest();
      const states = (await runLogOf(small())).map((event) => event.split(' ')[0]);
      expect(states.filter((state) => state === 'CANCELED')).toHaveLength(5);
      expect(states).not.toContain('CANCEL_REQUESTED');
    });

    it.each([
      ['due', {}],
      ['of a flow-control key', { settings: { flowControl: { key: 'k', parallelism: 9, periodS: 1 } } }],
      ['of a queue', { settings: { queueName: 'q' } }],
    ])('has none of its messages claimed until then: %s', async (_where, options: MessageOptions) => {
      const [first] = await beginWith(6, options);
      const plain = await small().accept({ settings: { ...options.settings } });
      await store().runs.endRuns({ endings: endings(first as Message, 'RUN_CANCELED'), nowMs: T0 });
      const during = await small().claim();
      expect(during.claimed.map(({ message }) => message.key).filter((key) => key !== plain.key)).toEqual([]);
      await cancelRest();
      const after = await small().claim();
      expect([...during.claimed, ...after.claimed].map(({ message }) => message.key)).toEqual([plain.key]);
      expect(after.nextDueAtMs).toBeUndefined();
    });

    it('has none of its messages claimed from the backlog of its origin, which then counts as empty', async () => {
      const [first] = await beginWith(6);
      const { origin } = first as Message;
      expect((await small().claim({ limit: 1, capacityByOrigin: { [origin]: 0 } })).claimed).toEqual([]);
      await store().runs.endRuns({ endings: endings(first as Message, 'RUN_CANCELED'), nowMs: T0 });
      const line = backlogKey(PROJECT, origin);
      const { claimed, emptied, nextDueAtMs } = await small().claim({ backlogsToServe: [line] });
      expect([claimed, emptied, nextDueAtMs]).toEqual([[], [line], undefined]);
    });

    it('does not take over a free slot of its lane', async () => {
      const settings = { queueName: 'q' };
      const { message, claimToken } = await small().acceptClaimed({ settings, url: 'https://app.example/before' });
      const [first] = await beginWith(5, { settings });
      await store().runs.endRuns({ endings: endings(first as Message, 'RUN_CANCELED'), nowMs: T0 });
      const handoff = { worker: 'w1', claimToken: small().number(), bytesMax: 1_000 };
      expect(
        await store().messages.settle({ settlement: settlement(message, claimToken, delivered()), nowMs: T0, handoff }),
      ).toEqual({
        kind: 'saved',
      });
    });

    it('marks messages in flight, and sends the failure callback', async () => {
      const claimed = () => ({ kind: 'claimed', claimToken: small().number(), worker: 'w1' }) as const;
      const [first, ...steps] = await beginWith(5, { state: claimed() });
      const { entry: _entry, ...callback } = appended(small(), first as Message, { callType: 'failureCall' });
      const failed: Change = {
        ...{ ...lastFailure(T0), follows: [callback] },
        ending: ending(first as Message, { state: 'RUN_FAILED', failureCallbackKey: callback.message.key }),
      };
      const tokens = new Map((await store().workers.claimsOf({ worker: 'w1' })).map((each) => [each.key, each]));
      const tokenOf = ({ key }: Message) => tokens.get(key)?.claimToken ?? 0;
      const settled = await store().messages.settle({
        settlement: settlement(first as Message, tokenOf(first as Message), failed),
        nowMs: T0,
      });
      expect(settled).toMatchObject({ kind: 'saved', follows: [{ state: 'due' }], isMoreLeft: true });
      const told = (await small().claim()).claimed;
      expect(told.map(({ message }) => message.key)).toEqual([callback.message.key]);
      expect(await cancelRest()).toBe(1);
      for (const step of steps) {
        const change = { ...settlement(step, tokenOf(step), retrying(T0, T0, 1)), changeIfCancelRequested: cancelled };
        expect(await store().messages.settle({ settlement: change, nowMs: T0 })).toEqual({
          kind: 'saved',
          isCancelled: true,
        });
      }
    });

    it('cancels a message whose attempt in flight ends in a retry before it is reached', async () => {
      const claimToken = small().number();
      const steps = await beginWith(5);
      const late = appended(small(), steps[0] as Message, {
        state: { kind: 'claimed', claimToken, worker: 'w1' },
        entry: { entryKey: 'late' },
      });
      await store().messages.accept({ messages: [late], nowMs: T0 });
      await store().runs.endRuns({ endings: endings(steps[0] as Message, 'RUN_CANCELED'), nowMs: T0 });
      await store().messages.settle({
        settlement: settlement(late.message, claimToken, retrying(T0, T0, 1)),
        nowMs: T0,
      });
      await cancelRest();
      expect((await small().claim()).claimed).toEqual([]);
      expect((await runLogOf(small())).filter((event) => event.startsWith('CANCELED'))).toHaveLength(6);
    });
  });

  it('is not logged before earlier events, whatever the clock shows', async () => {
    const first = await startRun(world(), { createdAtMs: T0 + 50 });
    await append(world(), first, { createdAtMs: T0 + 60 });
    await end(first, { atMs: T0 });
    const page = { count: 10, order: 'earliestFirst' } as const;
    const { items } = await world().store.runLogs.listRunEvents({ projectId: PROJECT, filter: {}, page });
    const latest = items.filter(({ state }) => state !== 'CANCELED').at(-1);
    expect([latest?.state, latest?.atMs]).toEqual(['RUN_SUCCESS', T0 + 60]);
  });

  it('lets a run with the same id start in the next publish', async () => {
    const first = await startRun(world());
    const next = newRunMessage(world(), { createdAtMs: T0 + 1 });
    const [ended, [begun]] = await Promise.all([end(first), world().save([next])]);
    // Saved together, publishes come first.
    expect([ended?.kind, begun?.kind]).toEqual(['ended', 'duplicate']);
    expect((await world().save([next]))[0]?.kind).toBe('accepted');
  });
}
