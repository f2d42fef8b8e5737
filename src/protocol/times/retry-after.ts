/** Computes the delay of a retry from the endpoint's response, and the default back-off. */
import { trimBlanks } from '../headers.ts';
import type { HeaderMap } from '../options/settings.ts';
import { isDecimal, sumOfParts } from './durations.ts';

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

/** A number of this size or more is a Unix time, which some APIs send in `X-RateLimit-Reset`: no delay is so long. */
const UNIX_TIME_S_MIN = 1_000_000_000;

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const TIME = String.raw`(?<hour>\d{2}):(?<minute>\d{2}):(?<second>\d{2})`;
const MONTH = '(?<month>[A-Z][a-z]{2})';
/**
 * The three forms of RFC 9110 5.6.7: `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT`, `Sun Nov  6 08:49:37 1994`.
 * The weekday is not checked, since some senders get it wrong, as does an official example.
 */
const DATES = [
  new RegExp(String.raw`^[A-Za-z]{3}, (?<day>\d{2}) ${MONTH} (?<year>\d{4}) ${TIME} GMT$`),
  new RegExp(String.raw`^[A-Za-z]{3,6}day, (?<day>\d{2})-${MONTH}-(?<year>\d{2}) ${TIME} GMT$`),
  new RegExp(String.raw`^[A-Za-z]{3} ${MONTH} (?<day>[ \d]\d) ${TIME} (?<year>\d{4})$`),
];

/**
 * The delay that the response to a failed attempt requests, in milliseconds from `nowMs`, at most a day. `undefined` if
 * no header has a usable value; then the ordinary delay applies (contract M 8.4). Negative and unreadable values and Unix
 * times are not usable. Neither are 0 and past dates: an endpoint with a slow clock would use up all retries at once.
 */
export function retryAfterMs(header: HeaderMap, nowMs: number): number | undefined {
  for (const name of HEADERS) {
    for (const value of header[name] ?? []) {
      const delayMs = delayOf(trimBlanks(value), nowMs);
      if (delayMs !== undefined && delayMs > 0) return Math.min(delayMs, DELAY_MAX_MS);
    }
  }
  return undefined;
}

function delayOf(value: string, nowMs: number): number | undefined {
  if (value.length > LENGTH_MAX) return undefined;
  if (isDecimal(value)) return Number(value) < UNIX_TIME_S_MIN ? Math.round(Number(value) * 1000) : undefined;
  const dateMs = timeOfDate(value, nowMs);
  if (dateMs !== undefined) return dateMs - nowMs;
  const durationMs = sumOfParts(value, MS_BY_UNIT);
  return durationMs === undefined ? undefined : Math.round(durationMs);
}

/** Unix ms of an HTTP date. */
function timeOfDate(text: string, nowMs: number): number | undefined {
  const parts = DATES.map((form) => form.exec(text)?.groups).find((groups) => groups !== undefined);
  if (parts === undefined) return undefined;
  const [day = 0, hour = 0, minute = 0, second = 0] = ['day', 'hour', 'minute', 'second'].map((name) =>
    Number(parts[name]),
  );
  const month = MONTHS.indexOf(parts['month'] ?? '');
  const year = fullYear(parts['year'] ?? '', nowMs);
  // JavaScript turns the 31st of a month with 30 days into the 1st of the next month.
  const isRealDay = month >= 0 && new Date(Date.UTC(year, month, day)).getUTCDate() === day;
  // Second 60 is a leap second; it counts as the first second of the next minute.
  if (!isRealDay || hour > 23 || minute > 59 || second > 60) return undefined;
  return Date.UTC(year, month, day, hour, minute, second);
}

/** Adds this century to a year of two digits, or the last century if the year is over 50 years ahead (RFC 9110 5.6.7). */
function fullYear(digits: string, nowMs: number): number {
  if (digits.length === 4) return Number(digits);
  const thisYear = new Date(nowMs).getUTCFullYear();
  const year = thisYear - (thisYear % 100) + Number(digits);
  return year - thisYear > 50 ? year - 100 : year;
}

const BACK_OFF_MAX_S = 86_400;

/**
 * The default wait before the `retry`-th retry (1, 2, …), in milliseconds: e^(2.5 `retry`) seconds, rounded down to whole
 * seconds, at most a day (contract M 8.2). The waits are 12 s, 148 s, 1808 s, 22026 s, then 86400 s.
 */
export function defaultBackOffMs(retry: number): number {
  return Math.min(BACK_OFF_MAX_S, Math.floor(Math.exp(2.5 * retry))) * 1000;
}
