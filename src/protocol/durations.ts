import { trimBlanks } from './headers.ts';

const MS_BY_UNIT = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);

/** Longer than any duration that somebody means. */
const LENGTH_MAX = 128;

/**
 * A duration of a config header in milliseconds: `1d10h30m`, `1.5h`, `300ms`, or a bare number of seconds
 * (contract M 3.2). `undefined` when it is none, or too long to count in milliseconds. Zero is a duration; whether
 * it makes sense is for the caller to say. Not the grammar of `Retry-After`: see `retry-after.ts`.
 */
export function parseDurationMs(text: string): number | undefined {
  const duration = trimBlanks(text);
  if (duration.length > LENGTH_MAX) return undefined;
  if (isDecimal(duration)) return safeMs(Number(duration) * 1000);
  return safeMs(sumOfParts(duration, MS_BY_UNIT) ?? Number.NaN);
}

/** True for `1*DIGIT ["." 1*DIGIT]`. */
export function isDecimal(text: string): boolean {
  const length = decimalLength(text, 0);
  return length > 0 && length === text.length;
}

/**
 * Adds up `number unit` pairs with the given units; `undefined` for anything else, empty text included. The result is
 * in whatever the unit table counts in, and may be fractional or infinite.
 */
export function sumOfParts(text: string, units: ReadonlyMap<string, number>): number | undefined {
  let sum = 0;
  let at = 0;
  do {
    const length = decimalLength(text, at);
    if (length === 0) return undefined;
    const number = Number(text.slice(at, at + length));
    at += length;
    const unitStart = at;
    while (at < text.length && !isDigit(text.charCodeAt(at))) at++;
    const unit = units.get(text.slice(unitStart, at));
    if (unit === undefined) return undefined;
    sum += number * unit;
  } while (at < text.length);
  return sum;
}

/** Length of the decimal number that begins at `start`; 0 when there is none. */
function decimalLength(text: string, start: number): number {
  let at = start;
  while (isDigit(text.charCodeAt(at))) at++;
  if (at === start) return 0;
  if (text[at] === '.' && isDigit(text.charCodeAt(at + 1))) {
    at++;
    while (isDigit(text.charCodeAt(at))) at++;
  }
  return at - start;
}

/** NaN, which `charCodeAt` answers past the end, is no digit. */
function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function safeMs(ms: number): number | undefined {
  const whole = Math.round(ms);
  return Number.isSafeInteger(whole) ? whole : undefined;
}

/** The latest time that has a date; explanations of what waits name dates. */
const TIME_MS_MAX = 8.64e15;

/** Whether a Unix time in milliseconds can be written as a date. */
export function isTime(ms: number): boolean {
  return Math.abs(ms) <= TIME_MS_MAX;
}
