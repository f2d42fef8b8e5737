import { expect, it } from 'vitest';
import type { NewMessage } from '../../../src/engine/model.ts';
import type { Schedule, ScheduleChange, SchedulePlan, ScheduleState } from '../../../src/engine/schedules/schedules.ts';
import {
  bytes,
  delivered,
  eachWorld,
  lastFailure,
  type OpenStore,
  OTHER_PROJECT,
  PROJECT,
  settlement,
  T0,
} from './world.ts';

interface ScheduleOptions {
  id?: string;
  projectId?: number;
  createdAtMs?: number;
  plan?: Partial<SchedulePlan>;
  state?: Partial<ScheduleState>;
}

const MINUTE_MS = 60_000;
/** A plan with every field. */
const FULL_PLAN: SchedulePlan = {
  cron: 'CRON_TZ=Asia/Tokyo 0 4 * * *',
  destination: { kind: 'group', name: 'g' },
  method: 'PUT',
  header: { 'Content-Type': ['text/plain'], X: ['1', '2'] },
  body: bytes('hello'),
  settings: {
    dialect: 'waypost',
    maxRetries: 5,
    scheduleId: 'full',
    queueName: 'q',
    labels: ['a', 'b'],
    callback: { url: 'https://c.example/', method: 'POST', header: { Y: ['z'] } },
  },
  delayMs: 30_000,
  callerIp: '10.0.0.1',
  catchUp: 'all',
  overlap: 'skip',
  kept: { rawHeaders: ['Upstash-Retries', '5'], queryConfig: [['upstash-label', 'a,b']] },
};

export function schedulesConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const store = () => world().store;

  const tryToSave = (saved: Schedule, fromVersion?: number, schedulesMax = 0) =>
    store().schedules.saveSchedule({ schedule: saved, fromVersion, schedulesMax });

  const changeAll = (changes: ScheduleChange[]) => store().schedules.changeSchedules({ changes, nowMs: T0 });

  function schedule({ id = 's', projectId = PROJECT, createdAtMs = T0, plan, state }: ScheduleOptions = {}): Schedule {
    return {
      key: world().number(),
      projectId,
      id,
      createdAtMs,
      plan: {
        cron: '* * * * *',
        destination: { kind: 'url', url: 'https://example.com/hook' },
        method: 'POST',
        header: {},
        body: new Uint8Array(0),
        settings: { dialect: 'upstash', maxRetries: 3, scheduleId: id },
        ...plan,
      },
      state: { version: world().number(), isPaused: false, nextAtMs: T0, ...state },
    };
  }

  async function save(options: ScheduleOptions = {}): Promise<Schedule> {
    const made = schedule(options);
    expect(await tryToSave(made)).toBe('saved');
    return made;
  }

  function change(of: Schedule, state: Partial<ScheduleState> = {}, messages: NewMessage[] = []): ScheduleChange {
    const next = { ...of.state, version: world().number(), ...state };
    return { key: of.key, fromVersion: of.state.version, state: next, messages };
  }

  /** Sets the next time a minute later, with `count` messages. */
  function trigger(of: Schedule, count = 1): { change: ScheduleChange; messages: NewMessage[] } {
    const messages = Array.from({ length: count }, () => world().message({ settings: { scheduleId: of.id } }));
    const lastTrigger = { atMs: T0, firstKey: messages[0]?.message.key ?? 0, messages: count };
    return { change: change(of, { nextAtMs: T0 + MINUTE_MS, passedUntilMs: T0, lastTrigger }, messages), messages };
  }

  const find = async (id: string, projectId = PROJECT) =>
    (await store().schedules.findSchedule({ projectId, id }))?.schedule;
  const due = async (nowMs = T0, limit = 10, bytesMax = 1e6) =>
    store().schedules.dueSchedules({ nowMs, limit, bytesMax });
  const dueIds = async (nowMs = T0, limit = 10, bytesMax = 1e6) =>
    (await due(nowMs, limit, bytesMax)).due.map((one) => one.schedule.id);

  it('saves a schedule as given', async () => {
    const full = await save({
      id: 'full',
      plan: FULL_PLAN,
      state: {
        isPaused: true,
        passedUntilMs: T0 - 1,
        lastTrigger: { atMs: T0 - 1, firstKey: 1, messages: 0 },
        error: 'topic g not found',
      },
    });
    const plain = await save({ id: 'plain' });
    expect(await store().schedules.findSchedule({ projectId: PROJECT, id: 'full' })).toEqual({
      schedule: full,
      lastMessages: [],
    });
    expect(await find('plain')).toEqual(plain);
    expect(await find('Full')).toBeUndefined();
    expect(await find('full', OTHER_PROJECT)).toBeUndefined();
  });

  it('replaces a whole schedule if its version is the expected one, and nothing otherwise', async () => {
    const before = await save({ plan: FULL_PLAN });
    const after: Schedule = { ...schedule({ createdAtMs: before.createdAtMs }), key: before.key };
    expect(await tryToSave(after)).toBe('stale');
    expect(await tryToSave(after, before.state.version + 1_000_000)).toBe('stale');
    expect(await find('s')).toEqual(before);
    expect(await tryToSave(after, before.state.version)).toBe('saved');
    expect(await find('s')).toEqual(after);
    expect(await tryToSave(schedule({ id: 'gone' }), 7)).toBe('stale');
    expect(await store().schedules.listSchedules({ projectId: PROJECT })).toHaveLength(1);
  });

  it('refuses a schedule over the limit of a project, and only there', async () => {
    const first = await save({ id: 'a' });
    expect(await tryToSave(schedule({ id: 'b' }), undefined, 1)).toBe('tooMany');
    expect(await find('b')).toBeUndefined();
    const again = { ...schedule({ id: 'a' }), key: first.key };
    expect(await tryToSave(again, first.state.version, 1)).toBe('saved');
    expect(await tryToSave(schedule({ id: 'b', projectId: OTHER_PROJECT }), undefined, 1)).toBe('saved');
  });

  it('saves the next time of a schedule together with its messages', async () => {
    const before = await save();
    const { change: moved, messages } = trigger(before, 2);
    expect(await changeAll([moved])).toEqual([[{ state: 'due' }, { state: 'due' }]]);
    expect((await find('s'))?.state).toEqual(moved.state);
    for (const { message } of messages) {
      expect(await world().find(message)).toEqual(message);
      expect(await world().statesOf(message)).toEqual(['CREATED']);
    }
  });

  it.each([
    ['moved on', (before: Schedule) => changeAll([trigger(before).change])],
    ['paused', (before: Schedule) => changeAll([change(before, { isPaused: true })])],
    ['overwritten', (before: Schedule) => tryToSave({ ...schedule(), key: before.key }, before.state.version)],
    ['deleted', (before: Schedule) => store().schedules.deleteSchedule({ projectId: PROJECT, id: before.id })],
    [
      'deleted and made again',
      async (before: Schedule) => {
        await store().schedules.deleteSchedule({ projectId: PROJECT, id: before.id });
        await save();
      },
    ],
  ])('saves no message for a schedule that was %s in between', async (_what, meanwhile) => {
    const before = await save();
    const { change: late, messages } = trigger(before);
    await meanwhile(before);
    const between = await store().schedules.findSchedule({ projectId: PROJECT, id: 's' });
    expect(await changeAll([late])).toEqual(['stale']);
    expect(await store().schedules.findSchedule({ projectId: PROJECT, id: 's' })).toEqual(between);
    for (const { message } of messages) expect(await world().find(message)).toBeUndefined();
  });

  it('triggers each time of many schedules once, however many commands try it concurrently', async () => {
    const all = await Promise.all(Array.from({ length: 30 }, (_, index) => save({ id: `s${index}` })));
    const attempts = [0, 1, 2].map(() => all.map((one) => trigger(one)));
    const results = await Promise.all(attempts.map((changes) => changeAll(changes.map((attempt) => attempt.change))));
    expect(results.flat().filter((result) => result !== 'stale')).toHaveLength(30);
    const made = await Promise.all(attempts.flat().map(({ messages: [one] }) => one && world().find(one.message)));
    expect(made.filter((message) => message !== undefined)).toHaveLength(30);
  });

  it('applies only the first of two changes of a schedule in one command', async () => {
    const before = await save();
    expect(await changeAll([trigger(before).change, trigger(before).change])).toEqual([[{ state: 'due' }], 'stale']);
  });

  it('finds due schedules, earliest first, and otherwise the next due time', async () => {
    await save({ id: 'later', state: { nextAtMs: T0 + 5 } });
    await save({ id: 'second', state: { nextAtMs: T0 } });
    await save({ id: 'paused', state: { nextAtMs: T0 - 9, isPaused: true } });
    await save({ id: 'first', state: { nextAtMs: T0 - 5 }, projectId: OTHER_PROJECT });
    expect(await due(T0 - 6)).toEqual({ due: [], nextAtMs: T0 - 5 });
    expect(await dueIds(T0)).toEqual(['first', 'second']);
    expect(await dueIds(T0, 1)).toEqual(['first']);
    expect(await dueIds(T0 + 5)).toEqual(['first', 'second', 'later']);
    for (const id of ['second', 'later']) await store().schedules.deleteSchedule({ projectId: PROJECT, id });
    await store().schedules.deleteSchedule({ projectId: OTHER_PROJECT, id: 'first' });
    expect(await due(T0 + 99)).toEqual({ due: [], nextAtMs: undefined });
  });

  it('finds active schedules that were triggered for times after the given one, page by page', async () => {
    const ahead = { nextAtMs: T0 + 3 * MINUTE_MS, passedUntilMs: T0 + 2 * MINUTE_MS };
    for (const id of ['a', 'b']) await save({ id, state: ahead });
    await save({ id: 'paused', state: { ...ahead, isPaused: true } });
    await save({ id: 'waits', state: { nextAtMs: T0 + 3 * MINUTE_MS } });
    await save({ id: 'right', state: { ...ahead, passedUntilMs: T0 } });
    const found = async (piece: { limit?: number; bytesMax?: number } = {}) => {
      const schedules = await store().schedules.strandedSchedules({
        passedAfterMs: T0 + MINUTE_MS,
        limit: 10,
        bytesMax: 1e6,
        ...piece,
      });
      return schedules.map(({ id }) => id);
    };
    expect(await found()).toEqual(['a', 'b']);
    expect(await found({ limit: 1 })).toEqual(['a']);
    expect(await found({ bytesMax: 1 })).toEqual(['a']);
    expect(
      (await store().schedules.strandedSchedules({ passedAfterMs: T0, limit: 1, bytesMax: 1 }))[0]?.state,
    ).toMatchObject(ahead);
  });

  it('returns due schedules by their bytes, but always one', async () => {
    for (const id of ['a', 'b', 'c']) await save({ id, plan: { body: new Uint8Array(10_000).fill(7) } });
    expect(await dueIds(T0, 10, 25_000)).toEqual(['a', 'b']);
    expect(await dueIds(T0, 10, 1)).toEqual(['a']);
    expect((await due(T0, 10, 1)).due[0]?.schedule.plan.body).toEqual(new Uint8Array(10_000).fill(7));
  });

  it('returns for schedules without overlap whether a message of the latest trigger is unfinished', async () => {
    const before = await save({ plan: { overlap: 'skip' } });
    const isBusy = async () => (await due(T0 + MINUTE_MS)).due.map((one) => one.isBusy);
    expect(await isBusy()).toEqual([false]);
    const messages = [world().message(), world().message()];
    const [first] = messages;
    const lastTrigger = { atMs: T0, firstKey: first?.message.key ?? 0, messages: 2 };
    await changeAll([change(before, { lastTrigger }, messages)]);
    for (const { message } of messages) {
      expect(await isBusy()).toEqual([true]);
      await store().messages.cancelById({ projectId: PROJECT, ids: [message.id], nowMs: T0 });
    }
    expect(await isBusy()).toEqual([false]);
  });

  it('returns how the messages of the latest trigger ended, and of no other trigger', async () => {
    const before = await save();
    const early = world().message();
    const lastOf = (messages: NewMessage[]) => ({
      atMs: T0,
      firstKey: messages[0]?.message.key ?? 0,
      messages: messages.length,
    });
    const first = change(before, { lastTrigger: lastOf([early]) }, [early]);
    await changeAll([first]);
    const tokens = [0, 1, 2, 3].map(() => world().number());
    const messages = tokens.map((claimToken) =>
      world().message({ state: { kind: 'claimed', claimToken, worker: 'w1' } }),
    );
    const second = {
      ...change(before, { lastTrigger: lastOf(messages) }, messages),
      fromVersion: first.state.version,
    };
    expect(await changeAll([second])).toEqual([messages.map(() => ({ state: 'claimed' }))]);
    const day = 86_400_000; // the entries of a day may be dropped together
    const ends = [delivered(T0 + day), lastFailure(T0 + day), undefined, delivered(T0 + 2 * day)];
    for (const [index, end] of ends.entries()) {
      const message = messages[index]?.message;
      if (message && end)
        await store().messages.settle({ settlement: settlement(message, tokens[index] ?? 0, end), nowMs: T0 });
    }
    const states = ['delivered', 'failed', 'unfinished', 'delivered'];
    const expected = messages.map(({ message }, index) => ({ messageId: message.id, state: states[index] }));
    expect((await store().schedules.findSchedule({ projectId: PROJECT, id: 's' }))?.lastMessages).toEqual(expected);
    expect(
      (await store().schedules.listSchedules({ projectId: PROJECT })).map(({ lastMessages }) => lastMessages),
    ).toEqual([expected]);
    const beforeMs = T0 + 2 * day;
    const bounds = {
      logsBeforeMs: beforeMs,
      deadBeforeMs: beforeMs,
      minutesBeforeMs: 0,
      keysUsedBeforeMs: 0,
      nowMs: beforeMs,
    };
    while (await store().retention.dropExpired({ ...bounds, rowsMax: 1_000 }));
    expect((await store().schedules.findSchedule({ projectId: PROJECT, id: 's' }))?.lastMessages).toEqual(
      expected.slice(2),
    );
  });

  it('lists the schedules of one project by creation', async () => {
    await save({ id: 'b', createdAtMs: T0 + 1 });
    await save({ id: 'c', createdAtMs: T0 + 2, plan: FULL_PLAN });
    await save({ id: 'a', createdAtMs: T0 + 2 });
    await save({ id: 'x', projectId: OTHER_PROJECT });
    const listed = await store().schedules.listSchedules({ projectId: PROJECT });
    expect(listed.map((view) => view.schedule.id)).toEqual(['b', 'c', 'a']);
    expect(listed[1]?.schedule).toEqual(await find('c'));
  });

  it('lists no more bodies than fit into memory', async () => {
    const body = new Uint8Array(7 * 1024 * 1024).fill(1);
    for (const id of ['a', 'b', 'c']) await save({ id, plan: { body } });
    const listed = await store().schedules.listSchedules({ projectId: PROJECT });
    expect(listed.map((view) => view.schedule.plan.body.length)).toEqual([body.length, body.length, 0]);
    expect((await find('c'))?.plan.body.length).toBe(body.length);
  });

  it('deletes one schedule and keeps its messages', async () => {
    const before = await save();
    await save({ id: 's', projectId: OTHER_PROJECT });
    const { change: moved, messages } = trigger(before);
    await changeAll([moved]);
    await store().schedules.deleteSchedule({ projectId: PROJECT, id: 's' });
    await store().schedules.deleteSchedule({ projectId: PROJECT, id: 's' });
    expect(await find('s')).toBeUndefined();
    expect(await find('s', OTHER_PROJECT)).toBeDefined();
    for (const { message } of messages) expect(await world().find(message)).toEqual(message);
  });
}
