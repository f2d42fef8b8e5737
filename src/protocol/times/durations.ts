/** Parses durations of config headers, and adds up durations in other units. */
import { trimBlanks } from '../headers.ts';

const MS_BY_UNIT = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);

/** No sensible duration is longer. */
const LENGTH_MAX = 128;

/**
 * A duration of a config header in milliseconds: `1d10h30m`, `1.5h`, `300ms`, or a number of seconds without a unit
 * (contract M 3.2). `undefined` when the text is not a duration, or too long to count in milliseconds. Zero is valid
 * here; the caller decides whether zero makes sense. `Retry-After` has another grammar: see `retry-after.ts`.
 */
export function parseDurationMs(text: string): number | undefined {
  const duration = trimBlanks(text);
  if (duration.length > LENGTH_MAX) return undefined;
  if (isDecimal(duration)) return safeMs(Number(duration) * 1000);
  return safeMs(sumOfParts(duration, MS_BY_UNIT) ?? Number.NaN);
}

/**
 * A duration in milliseconds from an argument in code: a number of milliseconds, or a text for `parseDurationMs`.
 * `undefined` for anything else, including negative numbers.
 */
export function toDurationMs(duration: unknown): number | undefined {
  if (typeof duration === 'string') return parseDurationMs(duration);
  return typeof duration === 'number' && duration >= 0 ? safeMs(duration) : undefined;
}

/** True for `1*DIGIT ["." 1*DIGIT]`. */
export function isDecimal(text: string): boolean {
  const length = decimalLength(text, 0);
  return length > 0 && length === text.length;
}

/**
 * Adds up `number unit` pairs with the given units. Returns `undefined` for any other text, including an empty text. The
 * result is in the unit of the table's values, and may be fractional or infinite.
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

/** False for NaN, which `charCodeAt` returns after the end of a text. */
function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function safeMs(ms: number): number | undefined {
  const whole = Math.round(ms);
  return Number.isSafeInteger(whole) ? whole : undefined;
}

/**
 * The last `Date` is 8.64e15, and due times are shown as dates. The limit is 20,000 years earlier, since the delay of a
 * schedule is checked once but added at each trigger, long afterwards.
 */
const TIME_MS_MAX = 8e15;

/** Whether a Unix time in milliseconds can be written as a date. */
export function isDateMs(ms: number): boolean {
  return Math.abs(ms) <= TIME_MS_MAX;
}
