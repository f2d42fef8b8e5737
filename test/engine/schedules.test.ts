/** The messages and the next time of a due schedule, as a table. */
import { describe, expect, it } from 'vitest';
import {
  firstTimeOf,
  messagesOfTrigger,
  noFurtherTrigger,
  type Schedule,
  type SchedulePlan,
  SET_BACK_MS_MAX,
  triggerOf,
} from '../../src/engine/schedules/schedules.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const NOON_MS = Date.UTC(2026, 0, 1, 12);

function schedule(plan: Partial<SchedulePlan> = {}, nextAtMs = NOON_MS): Schedule {
  return {
    key: 1,
    projectId: 1,
    id: 's',
    createdAtMs: 0,
    plan: {
      cron: '*/10 * * * *',
      destination: { kind: 'url', url: 'https://a.example/x' },
      method: 'POST',
      header: {},
      body: new Uint8Array(),
      settings: { dialect: 'upstash', maxRetries: 3, scheduleId: 's' },
      ...plan,
    },
    state: { version: 1, isPaused: false, nextAtMs },
  };
}

function decide(plan: Partial<SchedulePlan>, lateMs: number, options: { isBusy?: boolean; timesMax?: number } = {}) {
  const nowMs = NOON_MS + lateMs;
  const { times, nextAtMs, passedUntilMs } = triggerOf(schedule(plan), {
    isBusy: false,
    nowMs,
    timesMax: 99,
    ...options,
  });
  return { times, next: (nextAtMs - NOON_MS) / MINUTE_MS, passed: (passedUntilMs - NOON_MS) / MINUTE_MS };
}

describe('a due schedule', () => {
  it.each(['skip', 'one', 'all'] as const)(
    'is triggered once when it is on time, whatever it catches up: %s',
    (catchUp) => {
      expect(decide({ catchUp }, 0)).toEqual({ times: 1, next: 10, passed: 0 });
      expect(decide({ catchUp }, 400)).toMatchObject({ times: 1, next: 10 });
    },
  );

  it('is triggered once after an outage, and then at its next time', () => {
    expect(decide({}, 34 * MINUTE_MS)).toEqual({ times: 1, next: 40, passed: 34 });
    expect(decide({ catchUp: 'one' }, 48 * HOUR_MS)).toMatchObject({ times: 1, next: 48 * 60 + 10 });
  });

  it('skips missed times if it is set to, and triggers the one that is due now', () => {
    expect(decide({ catchUp: 'skip' }, 34 * MINUTE_MS)).toEqual({ times: 0, next: 40, passed: 34 });
    expect(decide({ catchUp: 'skip' }, 59_999)).toMatchObject({ times: 1, next: 10 });
    expect(decide({ catchUp: 'skip' }, MINUTE_MS)).toMatchObject({ times: 0, next: 10 });
    expect(decide({ catchUp: 'skip' }, 30 * MINUTE_MS + 5)).toMatchObject({ times: 1, next: 40 });
    expect(decide({ catchUp: 'skip', cron: '@every 1h' }, 5)).toMatchObject({ times: 1, next: 60 });
    expect(decide({ catchUp: 'skip', cron: '@every 1h' }, 61 * MINUTE_MS)).toMatchObject({ times: 0, next: 120 });
  });

  it('triggers each missed time if it is set to, a limited number at a time', () => {
    expect(decide({ catchUp: 'all' }, 34 * MINUTE_MS)).toEqual({ times: 4, next: 40, passed: 30 });
    expect(decide({ catchUp: 'all' }, 34 * MINUTE_MS, { timesMax: 3 })).toEqual({ times: 3, next: 30, passed: 20 });
    expect(decide({ catchUp: 'all' }, 20 * MINUTE_MS)).toEqual({ times: 3, next: 30, passed: 20 });
    expect(decide({ catchUp: 'all', cron: '@every 15m' }, 34 * MINUTE_MS)).toEqual({ times: 3, next: 45, passed: 30 });
  });

  it('waits for no message of the previous trigger, unless it must not overlap', () => {
    expect(decide({}, 0, { isBusy: true })).toMatchObject({ times: 1, next: 10 });
    expect(decide({ overlap: 'skip' }, 0, { isBusy: true })).toMatchObject({ times: 0, next: 10 });
    expect(decide({ overlap: 'skip' }, 0)).toMatchObject({ times: 1, next: 10 });
    expect(decide({ overlap: 'skip', catchUp: 'all' }, 34 * MINUTE_MS)).toMatchObject({ times: 1, next: 40 });
  });

  it('with an interval keeps its rhythm, however late it is', () => {
    expect(decide({ cron: '@every 45m' }, 3 * MINUTE_MS)).toMatchObject({ times: 1, next: 45 });
    expect(decide({ cron: '@every 45m' }, 100 * MINUTE_MS)).toMatchObject({ times: 1, next: 135 });
  });
});

describe('the first time', () => {
  it('is the next one after now', () => {
    expect(firstTimeOf('0 * * * *', undefined, NOON_MS)).toBe(NOON_MS + HOUR_MS);
    expect(firstTimeOf('0 * * * *', NOON_MS - HOUR_MS, NOON_MS - 1)).toBe(NOON_MS);
    expect(firstTimeOf('@every 2h', undefined, NOON_MS + 5)).toBe(NOON_MS + 2 * HOUR_MS + 5);
  });

  it('is not one that was triggered before the clock was set back', () => {
    expect(firstTimeOf('*/10 * * * *', NOON_MS, NOON_MS - 3)).toBe(NOON_MS + 10 * MINUTE_MS);
    expect(firstTimeOf('*/10 * * * *', NOON_MS, NOON_MS - HOUR_MS)).toBe(NOON_MS + 10 * MINUTE_MS);
    expect(firstTimeOf('*/10 * * * *', NOON_MS, NOON_MS - SET_BACK_MS_MAX)).toBe(NOON_MS + 10 * MINUTE_MS);
  });

  it('does not wait for a time at which the clock was wrong', () => {
    const before = NOON_MS - SET_BACK_MS_MAX - 1;
    expect(firstTimeOf('*/10 * * * *', NOON_MS, before)).toBe(before + 1);
    expect(firstTimeOf('*/10 * * * *', NOON_MS + 365 * 24 * HOUR_MS, NOON_MS)).toBe(NOON_MS + 10 * MINUTE_MS);
  });
});

describe('a schedule without a further time', () => {
  const NEVER = '0 0 30 2 *';
  const isFarAhead = (atMs: number): boolean => new Date(atMs).getUTCFullYear() > 200_000;

  it('has a next time that never comes, and which is still a date', () => {
    expect(isFarAhead(firstTimeOf(NEVER, undefined, NOON_MS))).toBe(true);
  });

  it('is not triggered after the due time', () => {
    const options = { isBusy: false, nowMs: NOON_MS, timesMax: 99 };
    for (const catchUp of ['one', 'all'] as const) {
      const { times, nextAtMs } = triggerOf(schedule({ cron: NEVER, catchUp }), options);
      expect([times, isFarAhead(nextAtMs)]).toEqual([1, true]);
    }
  });

  it('is the result of an expression that cannot be read any more', () => {
    const { times, nextAtMs, passedUntilMs } = noFurtherTrigger(NOON_MS);
    expect([times, isFarAhead(nextAtMs), passedUntilMs]).toEqual([0, true, NOON_MS]);
  });
});

describe('the messages of a trigger', () => {
  const group = {
    name: 'g',
    createdAtMs: 0,
    updatedAtMs: 0,
    endpoints: [{ url: 'https://a.example/1', name: 'one' }, { url: 'https://a.example/2' }],
  };
  const toGroup = (plan: Partial<SchedulePlan> = {}) =>
    schedule({ destination: { kind: 'group', name: 'g' }, ...plan });

  it('are one with the content of the schedule', () => {
    const body = new Uint8Array([1]);
    const plan = { header: { X: ['y'] }, body, delayMs: 5_000, callerIp: '10.0.0.1', method: 'GET' as const };
    expect(messagesOfTrigger(schedule(plan), undefined, NOON_MS)).toMatchObject([
      {
        url: 'https://a.example/x',
        body,
        callerIp: '10.0.0.1',
        options: { method: 'GET', header: { X: ['y'] }, delayMs: 5_000, settings: { scheduleId: 's', maxRetries: 3 } },
      },
    ]);
  });

  it('are one for each current endpoint of the group', () => {
    expect(
      messagesOfTrigger(toGroup(), group, NOON_MS).map(({ url, options }) => [url, options.settings]),
    ).toMatchObject([
      ['https://a.example/1', { scheduleId: 's', topicName: 'g', endpointName: 'one' }],
      ['https://a.example/2', { scheduleId: 's', topicName: 'g' }],
    ]);
  });

  it('have the default headers of the group, overridden by those of the schedule', () => {
    const headers = {
      'Upstash-Retries': ['9'],
      'Upstash-Delay': ['7s'],
      'Upstash-Header-Forward': ['true'],
      'Upstash-Deduplication-Id': ['once'],
      'Upstash-Forward-X': ['theirs'],
    };
    const kept = { rawHeaders: ['Upstash-Retries', '1', 'X-Event', 'push'], queryConfig: [] };
    const settings = { dialect: 'waypost' as const, maxRetries: 1, scheduleId: 's', queueName: 'q' };
    const [first] = messagesOfTrigger(toGroup({ kept, settings }), { ...group, headers }, NOON_MS);
    expect(first?.options).toMatchObject({
      header: { 'X-Event': ['push'], X: ['theirs'] },
      delayMs: 7_000,
      settings: { ...settings, topicName: 'g', endpointName: 'one' },
    });
    expect(first?.options).not.toHaveProperty('deduplication');
  });

  it('have only the headers of their schedule when that or the group has none to be merged', () => {
    const headers = { 'Upstash-Forward-X': ['theirs'] };
    const kept = { rawHeaders: ['Upstash-Forward-X', 'kept'], queryConfig: [] };
    const header = { X: ['own'] };
    for (const made of [
      messagesOfTrigger(toGroup({ header }), { ...group, headers }, NOON_MS),
      messagesOfTrigger(toGroup({ header, kept }), group, NOON_MS),
    ])
      expect(made.map(({ options }) => options.header)).toEqual([header, header]);
  });

  it('name no delay, caller or queue that their schedule does not have', () => {
    const kept = { rawHeaders: [], queryConfig: [] };
    for (const made of [
      messagesOfTrigger(schedule(), undefined, NOON_MS),
      messagesOfTrigger(toGroup({ kept }), { ...group, headers: {} }, NOON_MS),
    ]) {
      expect(made[0]).not.toHaveProperty('callerIp');
      expect(made[0]?.options).not.toHaveProperty('delayMs');
      expect(made[0]?.options.settings).not.toHaveProperty('queueName');
    }
  });

  it('are none when the group is missing', () => {
    expect(() => messagesOfTrigger(toGroup(), undefined, NOON_MS)).toThrow('topic g not found');
  });
});
