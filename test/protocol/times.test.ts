import { describe, expect, it, test } from 'vitest';
import { isDateMs, parseDurationMs } from '../../src/protocol/times/durations.ts';
import { defaultBackOffMs, retryAfterMs } from '../../src/protocol/times/retry-after.ts';
import { fc } from '../support/fast-check.ts';
import { headerMap } from './refusal.ts';

test('the latest time can be increased by years and still be a date', () => {
  expect([8e15, -8e15, 8e15 + 1].map(isDateMs)).toEqual([true, true, false]);
  expect(isDateMs(8.64e15 - 1_000)).toBe(false);
});

describe('a duration', () => {
  it.each([
    ['50s', 50_000],
    ['1d', 86_400_000],
    ['1h30m3s', 5_403_000],
    ['1d1h30m', 91_800_000],
    ['1d10h30m', 124_200_000],
    ['3d5h12m', 277_920_000],
    ['10', 10_000],
    ['1.5', 1500],
    ['1.1s', 1100],
    ['0.5h', 1_800_000],
    ['300ms', 300],
    ['5s1m5s', 70_000],
    ['0', 0],
    ['0s', 0],
    [' 7s\t', 7000],
    ['0.0004s', 0],
    ['0.0005s', 1],
  ])('%s is %d ms (86, 141)', (text, ms) => {
    expect(parseDurationMs(text)).toBe(ms);
  });

  it.each([
    '',
    ' ',
    'abc',
    '-1s',
    '+1s',
    '1w',
    '1S',
    '1 s',
    '1h 30m',
    '1.s',
    '.5s',
    '1h30',
    's',
    '1e3s',
    '1ns',
    '∞',
    '٣s',
    '9007199254740992ms',
    `${'9'.repeat(400)}s`,
    '1s'.repeat(65),
    'constructor',
  ])('is not %j', (text) => {
    expect(parseDurationMs(text)).toBeUndefined();
  });

  it('is the sum of its parts', () => {
    const part = fc.record({ n: fc.integer({ min: 0, max: 999 }), unit: fc.constantFrom('ms', 's', 'm', 'h', 'd') });
    const ms = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 10 }), (parts) => {
        const expected = parts.reduce((sum, { n, unit }) => sum + n * ms[unit], 0);
        expect(parseDurationMs(parts.map(({ n, unit }) => `${n}${unit}`).join(''))).toBe(expected);
      }),
    );
  });

  it('is undefined or a whole number of at least 0 for any text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9.smhd -]{0,20}$/)), (text) => {
        const ms = parseDurationMs(text);
        expect(ms === undefined || (Number.isSafeInteger(ms) && ms >= 0)).toBe(true);
      }),
    );
  });
});

describe('the default back-off', () => {
  it('is 12, 148, 1808, 22026 and 86400 s before retries 1 to 5, and a day after (51, 52)', () => {
    expect([1, 2, 3, 4, 5, 6, 999].map((retry) => defaultBackOffMs(retry) / 1000)).toEqual([
      12, 148, 1808, 22_026, 86_400, 86_400, 86_400,
    ]);
  });
});

describe('Retry-After and its family', () => {
  const nowMs = Date.UTC(2024, 5, 27, 12, 16, 19);
  const delayOf = (value: string): number | undefined => retryAfterMs(headerMap({ 'Retry-After': [value] }), nowMs);

  it.each([
    ['10', 10_000],
    ['1.5', 1500],
    ['86400', 86_400_000],
    ['5s', 5000],
    ['6m5s', 365_000],
    ['1.5h', 5_400_000],
    ['1d', 86_400_000],
    ['300ms', 300],
    ['1500us', 2],
    ['2500µs', 3],
    ['1s500000000ns', 1500],
    [' 5 ', 5000],
    // A Thursday, called Sunday in the official example.
    ['Sun, 27 Jun 2024 12:16:24 GMT', 5000],
    ['Thu, 27 Jun 2024 12:16:24 GMT', 5000],
    ['Thu, 27 Jun 2024 12:16:60 GMT', 41_000],
    ['Thu, 27 Jun 2024 23:59:59 GMT', 42_220_000],
    ['Thursday, 27-Jun-24 12:16:24 GMT', 5000],
    ['Thu Jun 27 12:16:24 2024', 5000],
    ['Mon Jul  1 12:16:19 2024', 86_400_000],
    ['172800', 86_400_000],
    ['86400.001', 86_400_000],
    ['999999999', 86_400_000],
    ['25h', 86_400_000],
    ['1d1s', 86_400_000],
    ['2d', 86_400_000],
    [`${'9'.repeat(60)}h`, 86_400_000],
    ['Fri, 28 Jun 2024 12:16:20 GMT', 86_400_000],
    ['Wed, 29 Feb 2040 00:00:00 GMT', 86_400_000],
    ['Sunday, 27-Jun-74 12:16:19 GMT', 86_400_000],
    [`${'0'.repeat(63)}5`, 5000],
  ])('%s means %d ms from now (58, 59)', (value, ms) => {
    expect(delayOf(value)).toBe(ms);
  });

  it.each([
    '0',
    '0s',
    '0.0004',
    'Thu, 27 Jun 2024 12:16:19 GMT',
    'Thursday, 27-Jun-24 12:16:19 GMT',
    'Thu Jun 27 12:16:19 2024',
    'Thu, 01 Jan 1970 00:00:00 GMT',
    'Thu, 29 Feb 2024 00:00:00 GMT',
    // More than fifty years ahead means the past (RFC 9110 5.6.7).
    'Thursday, 27-Jun-75 12:16:19 GMT',
  ])('%s requests no delay (58)', (value) => {
    expect(delayOf(value)).toBeUndefined();
  });

  it.each([
    '-1',
    '-5s',
    '',
    'soon',
    '1719490584',
    'Thu, 31 Jun 2024 12:16:24 GMT',
    'Thu, 29 Feb 2023 12:16:24 GMT',
    'Thu, 30 Feb 2024 12:16:24 GMT',
    'Thu, 29 Feb 1900 12:16:24 GMT',
    'Thu, 27 Foo 2024 12:16:24 GMT',
    'Thu, 27 Jun 2024 12:60:24 GMT',
    'Thu, 27 Jun 2024 12:16:61 GMT',
    `${'0'.repeat(64)}5`,
    'Thu, 00 Jun 2024 12:16:24 GMT',
    'Thu, 27 Jun 2024 24:16:24 GMT',
    'Thu, 27 Jun 2024 12:16:24 CET',
    'Thursday, 27-Jun-2024 12:16:24 GMT',
    'Thu, 27-Jun-24 12:16:24 GMT',
    'Thursday, 31-Jun-24 12:16:24 GMT',
    'Thu Jun 7 12:16:24 2024',
    'Thu Jun 27 12:16:24 2024 GMT',
    'Thu Jun 27 12:16:24 24',
    '9'.repeat(60),
    `${'0'.repeat(100)}1`,
  ])('%s is unusable (59)', (value) => {
    expect(delayOf(value)).toBeUndefined();
  });

  it.each(['X-Ratelimit-Reset', 'X-Ratelimit-Reset-Requests', 'X-Ratelimit-Reset-Tokens'])(
    'reads %s like Retry-After (60)',
    (name) => {
      expect(retryAfterMs(headerMap({ [name]: ['7s'] }), nowMs)).toBe(7000);
    },
  );

  it('uses the first header with a usable value', () => {
    const header = headerMap({
      'X-Ratelimit-Reset-Tokens': ['4'],
      'X-Ratelimit-Reset': ['1719490584'],
      'Retry-After': ['later', '-1'],
      'X-Ratelimit-Reset-Requests': ['3'],
    });
    expect(retryAfterMs(header, nowMs)).toBe(3000);
    expect(retryAfterMs(headerMap({}), nowMs)).toBeUndefined();
  });

  it('is undefined or at most a day for any response', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9.smhunµ, GMT:-]{0,30}$/)), (value) => {
        const ms = delayOf(value);
        expect(ms === undefined || (Number.isInteger(ms) && ms > 0 && ms <= 86_400_000)).toBe(true);
      }),
    );
  });
});
