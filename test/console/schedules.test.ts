import { describe, expect, it } from 'vitest';
import { bodyOf, isRedacted, messageHeaders, scheduleHeaders } from '../../console/src/screens/schedules/as-request.ts';
import { timeZoneOf, upcomingTimes } from '../../console/src/screens/schedules/upcoming.ts';

const SCHEDULE = {
  scheduleId: 'morning-report',
  cron: 'CRON_TZ=Europe/Berlin 30 7 * * MON-FRI',
  createdAt: 0,
  destination: 'https://app.example/report',
  method: 'PUT',
  header: { 'Content-Type': ['text/plain'], 'X-Kind': ['a', 'b'] },
  body: 'go',
  retries: 5,
  delay: 30,
  timeout: 1_500,
  queueName: 'reports',
  labels: ['eu', 'daily'],
  flowControlKey: 'crm',
  parallelism: 2,
  period: 1,
  failureCallback: 'https://app.example/failed',
  failureCallbackHeader: { 'X-Why': ['report'] },
  catchUp: 'one',
  isPaused: false,
  nextScheduleTime: 0,
} as const;
const GIVEN = structuredClone(SCHEDULE) as never;

const MESSAGE = {
  'Content-Type': 'text/plain',
  'Upstash-Method': 'PUT',
  'Upstash-Delay': '30s',
  'Upstash-Retries': '5',
  'Upstash-Timeout': '2s',
  'Upstash-Label': 'eu,daily',
  'Upstash-Flow-Control-Key': 'crm',
  'Upstash-Flow-Control-Value': 'parallelism=2,period=1',
  'Upstash-Forward-X-Kind': 'a, b',
  'Upstash-Failure-Callback': 'https://app.example/failed',
  'Upstash-Failure-Callback-Forward-X-Why': 'report',
};

describe('a schedule that is replaced by a changed one', () => {
  it('keeps all its shown values', () => {
    expect(scheduleHeaders(GIVEN)).toEqual({
      ...MESSAGE,
      'Upstash-Cron': SCHEDULE.cron,
      'Upstash-Schedule-Id': SCHEDULE.scheduleId,
      'Upstash-Queue-Name': 'reports',
      'Waypost-Schedule-Catch-Up': 'one',
    });
    expect(bodyOf(GIVEN)).toBe('go');
  });

  it('sends a binary body unchanged', () => {
    expect(bodyOf({ ...SCHEDULE, body: undefined, bodyBase64: 'AP8=' } as never)).toEqual(Uint8Array.of(0, 255));
  });

  it('is redacted if one of its values is hidden or masked', () => {
    expect(isRedacted(GIVEN)).toBe(false);
    const hash = `REDACTED:${'0a'.repeat(32)}`;
    expect(isRedacted({ ...SCHEDULE, body: hash } as never)).toBe(true);
    expect(isRedacted({ ...SCHEDULE, header: { 'X-Key': [hash] } } as never)).toBe(true);
    for (const member of ['destination', 'callback', 'failureCallback']) {
      expect(isRedacted({ ...SCHEDULE, [member]: 'https://ann:***@app.example/' } as never), member).toBe(true);
    }
  });
});

describe('a schedule that is run now', () => {
  it('sends the same message as its next trigger', () => {
    expect(messageHeaders(GIVEN)).toEqual(MESSAGE);
  });
});

describe('the next times', () => {
  const SUNDAY_MS = Date.UTC(2026, 0, 4);

  it('follow the cron expression in its time zone', () => {
    const times = upcomingTimes(SCHEDULE.cron, SUNDAY_MS, 6);
    expect(times.map((atMs) => new Date(atMs).toISOString().slice(0, 16))).toEqual([
      ...[5, 6, 7, 8, 9].map((day) => `2026-01-0${day}T06:30`),
      '2026-01-12T06:30',
    ]);
    expect([timeZoneOf(SCHEDULE.cron), timeZoneOf('* * * * *')]).toEqual(['Europe/Berlin', 'UTC']);
  });

  it('of an interval continue from one of its times', () => {
    expect(upcomingTimes('@every 90m', SUNDAY_MS, 2, SUNDAY_MS)).toEqual([
      SUNDAY_MS + 90 * 60_000,
      SUNDAY_MS + 180 * 60_000,
    ]);
  });
});
