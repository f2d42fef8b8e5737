import { isDecimal, sumOfParts } from './durations.ts';
import { trimBlanks } from './headers.ts';
import type { HeaderMap } from './settings.ts';

/** Canonical header names, in the order in which they are read. */
const HEADERS = ['Retry-After', 'X-Ratelimit-Reset', 'X-Ratelimit-Reset-Requests', 'X-Ratelimit-Reset-Tokens'] as const;

const DELAY_MAX_MS = 86_400_000;
/** Longer than any usable value. */
const LENGTH_MAX = 64;

/**
 * Units of Go's durations in milliseconds, and `d`, which the official workflow library writes (contract W 11). The micro
 * sign has two Unicode forms, which may also arrive as UTF-8 bytes read as Latin-1.
 */
const MS_BY_UNIT = new Map([
  ['ns', 1e-6],
  ['us', 1e-3],
  ['\u00b5s', 1e-3],
  ['\u03bcs', 1e-3],
  ['\u00c2\u00b5s', 1e-3],
  ['\u00ce\u00bcs', 1e-3],
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const RFC_1123 = /^[A-Za-z]{3}, (\d{2}) ([A-Z][a-z]{2}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT$/;

/**
 * The delay that the answer to a failed attempt asks for, in milliseconds from `nowMs`. `undefined` when no header
 * gives a usable value; then the back-off applies (contract M 8.4). Negative values, unreadable values and values over
 * a day are unusable, and so is an epoch time in `X-RateLimit-Reset`. A date in the past means at once.
 */
export function retryAfterMs(header: HeaderMap, nowMs: number): number | undefined {
  for (const name of HEADERS) {
    for (const value of header[name] ?? []) {
      const delayMs = delayOf(trimBlanks(value), nowMs);
      if (delayMs !== undefined && delayMs <= DELAY_MAX_MS) return delayMs;
    }
  }
  return undefined;
}

function delayOf(value: string, nowMs: number): number | undefined {
  if (value.length > LENGTH_MAX) return undefined;
  if (isDecimal(value)) return Math.round(Number(value) * 1000);
  const dateMs = timeOfDate(value);
  if (dateMs !== undefined) return Math.max(0, dateMs - nowMs);
  const durationMs = sumOfParts(value, MS_BY_UNIT);
  return durationMs === undefined ? undefined : Math.round(durationMs);
}

/**
 * Unix ms of `Sun, 27 Jun 2024 12:16:24 GMT`. The weekday is not checked, since senders get it wrong, as in this
 * official example.
 */
function timeOfDate(text: string): number | undefined {
  const parts = RFC_1123.exec(text);
  if (parts === null) return undefined;
  const [, day, monthName = '', year, hour, minute, second] = parts;
  const month = MONTHS.indexOf(monthName);
  const atMidnight = Date.UTC(Number(year), month, Number(day));
  // JavaScript turns the 31st of a month with 30 days into the 1st of the next month.
  const isRealDay = month >= 0 && new Date(atMidnight).getUTCDate() === Number(day);
  // Second 60 is a leap second; it counts as the first second of the next minute.
  if (!isRealDay || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return undefined;
  return atMidnight + Number(hour) * 3_600_000 + Number(minute) * 60_000 + Number(second) * 1000;
}
