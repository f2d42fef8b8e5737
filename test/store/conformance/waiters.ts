import { describe, expect, it } from 'vitest';
import type { Message, NewMessage } from '../../../src/engine/model.ts';
import type { NewWaiter, PendingEventLimits, WaiterPosition, WaitOutcome } from '../../../src/engine/runs/stores.ts';
import type { RunSettings, WaitSettings } from '../../../src/protocol/options/settings.ts';
import { bytes, eachWorld, type OpenStore, OTHER_PROJECT, PROJECT, T0 } from './world.ts';

const DAY_MS = 86_400_000;
const MIB = 1024 * 1024;

interface WaitOptions {
  eventId?: string;
  stepId?: number;
  deadlineMs?: number;
  runVersion?: number;
  key?: number;
  headers?: WaitSettings['headers'];
}

export function waitersConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const store = () => world().store;

  const add = (made: NewWaiter, taken?: { pendingEventKey: number; result: NewMessage }): Promise<WaitOutcome> =>
    store().waiters.addWaiter({ waiter: made, taken, nowMs: T0 });

  const resolve = (resolutions: { waiterKey: number; result: NewMessage }[], nowMs = T0) =>
    store().waiters.resolveWaiters({ resolutions, nowMs });

  /** Starts a run and returns its first message. */
  async function begin(id: string, projectId = PROJECT): Promise<Message> {
    const key = world().number();
    const url = 'https://app.example/wf';
    const run: RunSettings = { key, id, createdAtMs: T0, url, callType: 'step', init: 'known', features: [] };
    const newMessages = world().message({ key, projectId, url, settings: { run } });
    newMessages.entry = { runKey: key, kind: 'initial', entryKey: '0', bytes: 10 };
    const config = { dialect: 'upstash', features: [], isKept: true, isRest: false, isUnknownSdk: false } as const;
    newMessages.run = { id, url, createdAtMs: T0, config: { ...config, features: [], header: {}, maxRetries: 3 } };
    expect(await store().messages.accept({ messages: [newMessages], nowMs: T0 })).toMatchObject([{ kind: 'accepted' }]);
    return newMessages.message;
  }

  function partOf(of: Message): RunSettings {
    const { run } = of.settings;
    if (!run) throw new Error('not of a run');
    return run;
  }

  function waiter(of: Message, options: WaitOptions = {}): NewWaiter {
    const { eventId = 'e', stepId = 1, deadlineMs = T0 + DAY_MS, key = world().number(), headers = {} } = options;
    const result = {
      url: 'https://app.example/wf',
      header: { 'X-User': ['u'] },
      settings: { dialect: 'upstash', maxRetries: 3 },
    } as const;
    const header = { ...result.header, 'X-User': ['u'] };
    const wait: WaitSettings = {
      eventId,
      timeout: '1d',
      deadlineMs,
      notified: { ...result, header },
      timedOut: { ...result, header },
      headers,
      timeoutHeaders: {},
    };
    const body = bytes(JSON.stringify({ stepId, stepName: 'w', stepType: 'Wait', concurrent: 1 }));
    const settings = { run: { ...partOf(of) }, wait };
    const { message } = world().message({ key, projectId: of.projectId, body, settings });
    const entry: NewWaiter['record']['entry'] = { runKey: of.key, kind: 'wait', entryKey: `w${stepId}`, bytes: 0 };
    if (options.runVersion !== undefined) entry.runVersion = options.runVersion;
    return { record: { message, entry }, eventId, deadlineMs };
  }

  /** The message that ends a wait. */
  function resultOf(of: Message, stepId = 1, body = 'result'): NewMessage {
    const newMessages = world().message({
      projectId: of.projectId,
      url: of.url,
      body: bytes(body),
      settings: { run: partOf(of) },
    });
    newMessages.entry = { runKey: of.key, kind: 'step', entryKey: `s${stepId}`, bytes: 20 };
    return newMessages;
  }

  async function register(of: Message, options: WaitOptions = {}): Promise<Message> {
    const made = waiter(of, options);
    expect(await add(made)).toEqual({ kind: 'registered' });
    return made.record.message;
  }

  async function save(
    of: Message,
    text: string,
    eventId = 'e',
    limits: PendingEventLimits = { events: 100, bytes: 1_000 },
  ): Promise<{ key: number; saved: string }> {
    const key = world().number();
    const saved = await store().waiters.savePendingEvent({
      projectId: of.projectId,
      runKey: of.key,
      eventId,
      key,
      body: bytes(text),
      limits,
    });
    return { key, saved };
  }

  async function keysFor(eventId = 'e', page: { runKey?: number; afterKey?: number; count?: number } = {}) {
    return (await store().waiters.listWaiters({ projectId: PROJECT, eventId, count: 100, ...page })).map(
      ({ record }) => record.key,
    );
  }

  async function end(of: Message): Promise<void> {
    const run = await store().runs.findActiveRun({ projectId: of.projectId, id: partOf(of).id });
    const ending = {
      projectId: of.projectId,
      runKey: of.key,
      runVersion: run?.version ?? 0,
      state: 'RUN_CANCELED',
      atMs: T0,
    } as const;
    expect(await store().runs.endRuns({ endings: [{ ending, follows: [] }], nowMs: T0 })).toMatchObject([
      { kind: 'ended' },
    ]);
  }

  describe('a wait', () => {
    it('is found by its event, with everything that it was registered with', async () => {
      const run = await begin('a');
      const made = waiter(run, { headers: { 'Upstash-Workflow-Runid': ['a'] } });
      expect(await add(made)).toEqual({
        kind: 'registered',
      });
      const [found] = await store().waiters.listWaiters({ projectId: PROJECT, eventId: 'e', count: 10 });
      expect(found).toMatchObject({ eventId: 'e', deadlineMs: T0 + DAY_MS });
      expect(found?.record.body).toEqual(made.record.message.body);
      expect(structuredClone(found?.record.settings)).toEqual(structuredClone(made.record.message.settings));
    });

    it('returns its header maps without a prototype', async () => {
      const run = await begin('a');
      await register(run);
      const [found] = await store().waiters.listWaiters({ projectId: PROJECT, eventId: 'e', count: 10 });
      const { wait } = found?.record.settings ?? {};
      for (const map of [wait?.notified.header, wait?.timedOut.header, wait?.headers, wait?.timeoutHeaders]) {
        expect(Object.getPrototypeOf(map)).toBeNull();
      }
    });

    it('takes a position in the journal that deliveries do not show', async () => {
      const run = await begin('a');
      const record = await register(run);
      expect(await store().runs.readJournal({ projectId: run.projectId, runKey: run.key })).toHaveLength(1);
      const result = resultOf(run);
      expect(await resolve([{ waiterKey: record.key, result }])).toMatchObject([
        { state: 'due', journal: { position: 2 } },
      ]);
      expect(
        (await store().runs.readJournal({ projectId: run.projectId, runKey: run.key })).map(
          ({ messageId }) => messageId,
        ),
      ).toEqual([run.id, result.message.id]);
      expect(await store().runs.findRecords({ projectId: PROJECT, keys: [record.key] })).toMatchObject([
        { id: record.id },
      ]);
    });

    it('is registered once for its step, even after it has ended', async () => {
      const run = await begin('a');
      const record = await register(run);
      const again = (): Promise<WaitOutcome> => add(waiter(run));
      expect(await again()).toEqual({ kind: 'duplicate', messageId: record.id });
      await resolve([{ waiterKey: record.key, result: resultOf(run) }]);
      expect(await again()).toEqual({ kind: 'duplicate', messageId: record.id });
      expect(await keysFor()).toEqual([]);
    });

    it('is a duplicate when its step already has a result', async () => {
      const run = await begin('a');
      const result = resultOf(run);
      await store().messages.accept({ messages: [result], nowMs: T0 });
      expect(await add(waiter(run))).toEqual({
        kind: 'duplicate',
        messageId: result.message.id,
      });
    });

    it('of an ended run is not registered', async () => {
      const run = await begin('a');
      await end(run);
      expect(await add(waiter(run))).toEqual({ kind: 'over' });
    });

    it('is not registered for another version of its run', async () => {
      const run = await begin('a');
      const { version = 0 } = (await store().runs.findActiveRun({ projectId: PROJECT, id: 'a' })) ?? {};
      expect(await add(waiter(run, { runVersion: version + 1 }))).toEqual({
        kind: 'changed',
      });
      expect(await add(waiter(run, { runVersion: version }))).toEqual({
        kind: 'registered',
      });
    });
  });

  describe('a pending event', () => {
    it('is consumed by the next wait, the oldest event first, which ends the wait at once', async () => {
      const run = await begin('a');
      const first = await save(run, 'one');
      await save(run, 'two');
      const pendingEvent = await store().waiters.nextPendingEvent({ runKey: run.key, eventId: 'e' });
      expect(pendingEvent).toEqual({ key: first.key, body: bytes('one') });
      const made = waiter(run);
      const result = resultOf(run);
      const taken = { pendingEventKey: first.key, result };
      expect(await add(made, taken)).toMatchObject({
        kind: 'notified',
        saved: { state: 'due', journal: { position: 2 } },
      });
      expect(await store().waiters.nextPendingEvent({ runKey: run.key, eventId: 'e' })).toMatchObject({
        body: bytes('two'),
      });
      expect(await keysFor()).toEqual([]);
      expect(await world().find(result.message)).toMatchObject({ id: result.message.id });
    });

    it('that was saved or consumed since it was looked up makes the wait start again', async () => {
      const run = await begin('a');
      const { key } = await save(run, 'one');
      expect(await add(waiter(run))).toEqual({
        kind: 'changed',
      });
      const taken = (stepId: number) => ({ pendingEventKey: key, result: resultOf(run, stepId) });
      expect(await add(waiter(run), taken(1))).toMatchObject({ kind: 'notified' });
      expect(await add(waiter(run, { stepId: 2 }), taken(2))).toEqual({ kind: 'changed' });
      expect(await store().runs.readJournal({ projectId: run.projectId, runKey: run.key })).toHaveLength(2);
    });

    it('is saved by run and event, up to a number for each run', async () => {
      const [one, two] = [await begin('a'), await begin('b')];
      expect((await save(one, 'x', 'e', { events: 2, bytes: 1_000 })).saved).toBe('saved');
      expect((await save(one, '', 'other', { events: 2, bytes: 1_000 })).saved).toBe('saved');
      expect((await save(one, 'x', 'e', { events: 2, bytes: 1_000 })).saved).toBe('tooMuch');
      expect((await save(two, 'x', 'e', { events: 2, bytes: 1_000 })).saved).toBe('saved');
      expect(await store().waiters.nextPendingEvent({ runKey: one.key, eventId: 'other' })).toMatchObject({
        body: new Uint8Array(0),
      });
      expect(await store().waiters.nextPendingEvent({ runKey: two.key, eventId: 'other' })).toBeUndefined();
    });

    it('is saved up to a total size per run, but a single one may be larger', async () => {
      const run = await begin('wfr_size');
      const limits = { events: 100, bytes: 4 };
      expect((await save(run, 'large', 'e', limits)).saved).toBe('saved');
      expect((await save(run, 'x', 'e', limits)).saved).toBe('tooMuch');
    });

    it('is not saved when a waiter exists for it', async () => {
      const run = await begin('a');
      await register(run);
      expect((await save(run, 'x')).saved).toBe('waited');
      expect((await save(run, 'x', 'other')).saved).toBe('saved');
    });

    it('of an ended run is not saved, and saved ones are removed with its end', async () => {
      const run = await begin('a');
      await save(run, 'x');
      await end(run);
      expect((await save(run, 'x')).saved).toBe('over');
      expect(await store().waiters.nextPendingEvent({ runKey: run.key, eventId: 'e' })).toBeUndefined();
    });
  });

  describe('waiters', () => {
    it('are listed in order of registration, page by page, by project, event, and run', async () => {
      const [one, two, strange] = [await begin('a'), await begin('b'), await begin('c', OTHER_PROJECT)];
      const first = await register(one);
      const second = await register(two);
      const third = await register(one, { stepId: 2 });
      await register(one, { stepId: 3, eventId: 'other' });
      await register(strange);
      expect(await keysFor()).toEqual([first.key, second.key, third.key]);
      expect(await keysFor('e', { runKey: one.key })).toEqual([first.key, third.key]);
      expect(await keysFor('e', { runKey: strange.key })).toEqual([]);
      expect(await keysFor('e', { count: 2 })).toEqual([first.key, second.key]);
      expect(await keysFor('e', { afterKey: second.key })).toEqual([third.key]);
    });

    it('are listed for all events of a project, by event and then by registration, page by page', async () => {
      const [one, two, strange] = [await begin('a'), await begin('b'), await begin('c', OTHER_PROJECT)];
      const paidByTwo = await register(two, { eventId: 'paid-2' });
      const approved = await register(one, { eventId: 'approved', deadlineMs: T0 + 5 });
      const paid = await register(one, { stepId: 2, eventId: 'paid-2' });
      const paidFirst = await register(one, { stepId: 3, eventId: 'paid-1' });
      await register(strange, { eventId: 'paid-1' });
      const listed = async (prefix = '', count = 10, after?: WaiterPosition) =>
        store().waiters.listAllWaiters({ projectId: PROJECT, prefix, count, ...(after && { after }) });
      const keys = async (...args: Parameters<typeof listed>) => (await listed(...args)).map(({ key }) => key);

      expect((await listed())[0]).toEqual({
        ...{ key: approved.key, eventId: 'approved', messageId: approved.id, sinceMs: T0, deadlineMs: T0 + 5 },
        ...{ runId: 'a', runUrl: 'https://app.example/wf', runCreatedAtMs: T0 },
      });
      expect(await keys()).toEqual([approved.key, paidFirst.key, paidByTwo.key, paid.key]);
      expect(await keys('paid')).toEqual([paidFirst.key, paidByTwo.key, paid.key]);
      expect(await keys('paid-2')).toEqual([paidByTwo.key, paid.key]);
      expect(await keys('Paid')).toEqual([]);
      expect(await keys('', 2)).toEqual([approved.key, paidFirst.key]);
      expect(await keys('', 2, { eventId: 'paid-1', key: paidFirst.key })).toEqual([paidByTwo.key, paid.key]);
      expect(await keys('', 2, { eventId: 'paid-2', key: paidByTwo.key })).toEqual([paid.key]);
      expect(await keys('paid', 10, { eventId: 'approved', key: approved.key })).toHaveLength(3);
    });

    it('are listed in pages whose size their contents cannot exceed', async () => {
      const run = await begin('a');
      const headers = { 'Upstash-Forward-X': ['x'.repeat(3 * MIB)] };
      const first = await register(run, { headers });
      const second = await register(run, { stepId: 2, headers });
      expect(await keysFor()).toEqual([first.key]);
      expect(await keysFor('e', { afterKey: first.key })).toEqual([second.key]);
    });

    it('are resolved once each', async () => {
      const [one, two] = [await begin('a'), await begin('b')];
      const [first, second] = [await register(one), await register(two)];
      const newMessages = [resultOf(one), resultOf(one), resultOf(two)];
      const results = await resolve(
        [first, first, second].map(({ key }, index) => ({
          waiterKey: key,
          result: newMessages[index] as NewMessage,
        })),
      );
      expect(results).toMatchObject([{ state: 'due' }, 'gone', { state: 'due' }]);
      expect(await resolve([{ waiterKey: first.key, result: resultOf(one) }])).toEqual(['gone']);
      expect(await store().runs.readJournal({ projectId: one.projectId, runKey: one.key })).toHaveLength(2);
    });

    it('that are resolved have their message claimed if it can be sent at once', async () => {
      const run = await begin('a');
      const record = await register(run);
      const claimToken = world().number();
      const result = { ...resultOf(run), state: { kind: 'claimed', claimToken, worker: 'w1' } } as const;
      expect(await resolve([{ waiterKey: record.key, result }])).toMatchObject([
        { state: 'claimed', journal: { position: 2 } },
      ]);
    });

    it('are removed with the end of their run', async () => {
      const run = await begin('a');
      const record = await register(run);
      await end(run);
      expect(await keysFor()).toEqual([]);
      expect(await resolve([{ waiterKey: record.key, result: resultOf(run) }])).toEqual(['gone']);
    });

    it('are due at their deadline, earliest first, and the next deadline is returned', async () => {
      const run = await begin('a');
      const due = (nowMs: number) => store().waiters.dueWaiters({ nowMs, limit: 2 });
      expect(await due(T0)).toEqual({ due: [], nextAtMs: undefined });
      const late = await register(run, { deadlineMs: T0 + 30 });
      const early = await register(run, { stepId: 2, deadlineMs: T0 + 10 });
      const middle = await register(run, { stepId: 3, deadlineMs: T0 + 20 });
      expect(await due(T0 + 9)).toEqual({ due: [], nextAtMs: T0 + 10 });
      const { due: first, nextAtMs } = await due(T0 + 30);
      expect(first.map(({ record }) => record.key)).toEqual([early.key, middle.key]);
      expect(nextAtMs).toBeUndefined();
      await resolve(
        [early, middle].map(({ key }, index) => ({ waiterKey: key, result: resultOf(run, index + 2) })),
        T0 + 30,
      );
      expect((await due(T0 + 30)).due.map(({ record }) => record.key)).toEqual([late.key]);
    });
  });
}
