/** Which cron expressions are accepted, and the error texts for the others (contract M 15.2). */
import { describe, expect, it } from 'vitest';
import { parseCron } from '../../src/protocol/times/cron.ts';
import { checkCron, nextCronTime } from '../../src/protocol/times/cron-times.ts';
import { refusalOf } from './refusal.ts';

const NEW_YEAR = Date.UTC(2026, 0, 1); // a Thursday

/** The next `count` times in UTC, to the minute. */
function times(text: string, count = 3, fromMs = NEW_YEAR): string[] {
  const found: string[] = [];
  let atMs: number | undefined = fromMs;
  while (found.length < count) {
    atMs = nextCronTime(parseCron(text), atMs);
    if (atMs === undefined) break;
    found.push(new Date(atMs).toISOString().slice(0, 16));
  }
  return found;
}

describe('the five fields', () => {
  it.each([
    ['* * * * *', ['2026-01-01T00:01', '2026-01-01T00:02', '2026-01-01T00:03']],
    ['*/20 3 * * *', ['2026-01-01T03:00', '2026-01-01T03:20', '2026-01-01T03:40']],
    ['50/5 0 * * *', ['2026-01-01T00:50', '2026-01-01T00:55', '2026-01-02T00:50']],
    ['10-30/10 0 1 1 *', ['2026-01-01T00:10', '2026-01-01T00:20', '2026-01-01T00:30']],
    ['5,1,3-4 0 * * ?', ['2026-01-01T00:01', '2026-01-01T00:03', '2026-01-01T00:04']],
    ['0 5,1,3-4 * * *', ['2026-01-01T01:00', '2026-01-01T03:00', '2026-01-01T04:00']],
    ['0 12 ? feb-APR mon', ['2026-02-02T12:00', '2026-02-09T12:00', '2026-02-16T12:00']],
    ['0 0 31 * *', ['2026-01-31T00:00', '2026-03-31T00:00', '2026-05-31T00:00']],
    ['0 0 29 2 *', ['2028-02-29T00:00', '2032-02-29T00:00', '2036-02-29T00:00']],
    ['0\t0   *  * SUN', ['2026-01-04T00:00', '2026-01-11T00:00', '2026-01-18T00:00']],
  ])('reads %s', (text, expected) => {
    expect(times(text)).toEqual(expected);
  });

  it('matches a day that matches either day field if both are restricted', () => {
    expect(times('0 0 13 * FRI')).toEqual(['2026-01-02T00:00', '2026-01-09T00:00', '2026-01-13T00:00']);
  });

  it.each(['0 0 */13 * FRI', '0 0 ?/13 * FRI', '0 0 13-14 * */5'])(
    'asks for both day fields when one is open: %s',
    (text) => {
      for (const time of times(text, 10)) {
        const date = new Date(`${time}Z`);
        const fits = text.endsWith('FRI')
          ? [1, 14, 27].includes(date.getUTCDate()) && date.getUTCDay() === 5
          : [13, 14].includes(date.getUTCDate()) && [0, 5].includes(date.getUTCDay());
        expect([time, fits]).toEqual([time, true]);
      }
    },
  );
});

describe('macros', () => {
  it.each([
    ['@yearly', '0 0 1 1 *'],
    ['@annually', '0 0 1 1 *'],
    ['@monthly', '0 0 1 * *'],
    ['@weekly', '0 0 * * 0'],
    ['@daily', '0 0 * * *'],
    ['@midnight', '0 0 * * *'],
    ['@hourly', '0 * * * *'],
  ])('%s is %s', (macro, fields) => {
    expect(times(macro)).toEqual(times(fields));
    expect(times(`CRON_TZ=Asia/Tokyo ${macro}`)).toEqual(times(`TZ=Asia/Tokyo ${fields}`));
  });

  it('counts @every from the previous time, and keeps the same phase after a gap', () => {
    expect(times('@every 1h30m')).toEqual(['2026-01-01T01:30', '2026-01-01T03:00', '2026-01-01T04:30']);
    expect(times('@every 1d', 1)).toEqual(['2026-01-02T00:00']);
    expect(times('@every 1m', 1)).toEqual(['2026-01-01T00:01']);
    const cron = parseCron('@every 90m');
    const hours = (count: number) => NEW_YEAR + count * 3_600_000;
    expect(nextCronTime(cron, hours(10), NEW_YEAR)).toBe(hours(10.5));
    expect(nextCronTime(cron, hours(10.5), NEW_YEAR)).toBe(hours(12));
    expect(nextCronTime(cron, hours(-10), NEW_YEAR)).toBe(NEW_YEAR);
  });
});

describe('zones', () => {
  it('reads times in the zone of CRON_TZ, and in UTC without it', () => {
    expect(times('CRON_TZ=America/New_York 0 4 * * *', 1)).toEqual(['2026-01-01T09:00']);
    expect(times('TZ=Asia/Kathmandu 0 4 * * *', 1)).toEqual(['2026-01-01T22:15']);
    expect(times('0 4 * * *', 1)).toEqual(['2026-01-01T04:00']);
    expect(times('CRON_TZ=us/eastern 0 4 * * *', 1)).toEqual(['2026-01-01T09:00']);
  });

  it('skips local times that do not exist', () => {
    const from = Date.UTC(2026, 2, 7);
    expect(times('CRON_TZ=America/New_York 30 2 * * *', 2, from)).toEqual(['2026-03-07T07:30', '2026-03-09T06:30']);
    expect(times('CRON_TZ=America/New_York 0 * 8 3 *', 3, Date.UTC(2026, 2, 8, 5, 30))).toEqual([
      '2026-03-08T06:00',
      '2026-03-08T07:00', // 3 o'clock there; 2 o'clock was skipped
      '2026-03-08T08:00',
    ]);
  });

  it('runs only the first time in a fixed hour that the clocks show twice', () => {
    const from = Date.UTC(2026, 10, 1, 4);
    expect(times('CRON_TZ=America/New_York 30 1 * * *', 2, from)).toEqual(['2026-11-01T05:30', '2026-11-02T06:30']);
    expect(times('CRON_TZ=America/New_York 0 0,1,2 * * *', 3, from)).toEqual([
      '2026-11-01T05:00',
      '2026-11-01T07:00',
      '2026-11-02T05:00',
    ]);
  });

  it.each(['*', '?', '*/1', '0-23', '0/1'])('runs in each real hour when the hours are %s', (hours) => {
    const from = Date.UTC(2026, 10, 1, 4);
    expect(times(`CRON_TZ=America/New_York 0 ${hours} * * *`, 4, from)).toEqual([
      '2026-11-01T05:00',
      '2026-11-01T06:00', // the clocks show 1 o'clock a second time
      '2026-11-01T07:00',
      '2026-11-01T08:00',
    ]);
    expect(times(`CRON_TZ=America/New_York 0 ${hours} * * *`, 2, Date.UTC(2026, 2, 8, 6, 30))).toEqual([
      '2026-03-08T07:00', // 3 o'clock there; 2 o'clock was skipped
      '2026-03-08T08:00',
    ]);
  });
});

describe('a refusal', () => {
  it.each([
    ['', 'empty spec string'],
    [' \t ', 'empty spec string'],
    ['* * * *', 'expected exactly 5 fields, found 4: [* * * *]'],
    ['* * * * * *', 'expected exactly 5 fields, found 6: [* * * * * *]'],
    ['60 * * * *', 'end of range (60) above maximum (59): 60'],
    ['* 24 * * *', 'end of range (24) above maximum (23): 24'],
    ['* * 0 * *', 'beginning of range (0) below minimum (1): 0'],
    ['* * * 13 *', 'end of range (13) above maximum (12): 13'],
    ['* * * * 7', 'end of range (7) above maximum (6): 7; Sunday is 0'],
    ['* * * * 5-7', 'end of range (7) above maximum (6): 5-7; Sunday is 0'],
    ['* * * * SUNDAY', 'failed to parse int from SUNDAY'],
    ['* * * * 5#2', 'failed to parse int from 5#2'],
    ['* * L * *', 'failed to parse int from L'],
    ['* * 15W * *', 'failed to parse int from 15W'],
    ['-1 * * * *', 'failed to parse int from '],
    ['1.5 * * * *', 'failed to parse int from 1.5'],
    ['1, * * * *', 'failed to parse int from '],
    ['*-5 * * * *', 'failed to parse int from *'],
    ['9-3 * * * *', 'beginning of range (9) beyond end of range (3): 9-3'],
    ['1-2-3 * * * *', 'too many hyphens: 1-2-3'],
    ['*/2/3 * * * *', 'too many slashes: */2/3'],
    ['*/0 * * * *', 'step of range should be a positive number: */0'],
    ['@fortnightly', 'unrecognized descriptor: @fortnightly'],
    ['@reboot', 'unrecognized descriptor: @reboot'],
    ['@every soon', 'failed to parse duration @every soon'],
    ['@every 59s', 'the interval is shorter than one minute: @every 59s'],
    ['@every -5m', 'failed to parse duration @every -5m'],
    ['CRON_TZ=Mars/Olympus * * * * *', 'provided bad location Mars/Olympus: unknown time zone Mars/Olympus'],
    ['CRON_TZ=+05:00 * * * * *', 'provided bad location +05:00: unknown time zone +05:00'],
    ['TZ= * * * * *', 'provided bad location : unknown time zone '],
    ['CRON_TZ=UTC', 'expected exactly 5 fields, found 0: []'],
  ])('of %j names the reason', (text, detail) => {
    expect(refusalOf(() => parseCron(text))).toEqual({
      code: 'invalid_header',
      status: 400,
      message: `Invalid cron expression ${detail}`,
    });
  });

  it('rejects an expression that is too long', () => {
    const ofLength = (length: number): string => `${`${'0'.repeat(9)},`.repeat((length - 10) / 10)}00 * * * *`;
    expect(parseCron(ofLength(1_000))).toMatchObject({ minutes: [0] });
    expect(refusalOf(() => parseCron(`0${ofLength(1_000)}`)).message).toContain('longer than 1000 characters');
  });

  it.each(['0 0 30 2 *', '0 0 31 4,6 *', '@every 999999d', 'CRON_TZ=America/New_York 30 2 8-14 3 */7'])(
    'rejects %s, which never occurs',
    (text) => {
      expect(() => checkCron(text, NEW_YEAR)).toThrow('Invalid cron expression it never occurs');
    },
  );

  it('accepts a time that occurs once in decades, and only trims the text', () => {
    expect(checkCron(' 0 0  29 2 */7 ', Date.UTC(2069, 0, 1))).toBe('0 0  29 2 */7');
    expect(times('0 0 29 2 */7', 2, Date.UTC(2069, 0, 1))).toEqual(['2088-02-29T00:00', '2128-02-29T00:00']);
  });
});
