/**
 * Parses cron expressions: five fields, macros and `@every`, with an optional time zone (contract M 15.2). Errors have
 * the texts of the Go library that the contract names.
 */

import { ApiError } from '../errors.ts';
import { trimBlanks } from '../headers.ts';
import { memo } from '../memo.ts';
import { parseDurationMs } from './durations.ts';
import { readTimeZone, type TimeZone, UTC } from './time-zone.ts';

/** A parsed expression. `cron-times.ts` computes its times. */
export type Cron = CalendarCron | IntervalCron;

export interface CalendarCron {
  kind: 'calendar';
  zone: TimeZone;
  /** Ascending, like the hours. */
  minutes: readonly number[];
  hours: readonly number[];
  /** Whether the expression is hourly, so that an hour that the clocks repeat counts again (contract M 15.2). */
  isHourly: boolean;
  daysOfMonth: ReadonlySet<number>;
  /** 1 is January. */
  months: ReadonlySet<number>;
  /** 0 is Sunday. */
  daysOfWeek: ReadonlySet<number>;
  /** Whether a day must match both day fields, because one of them starts with `*` or `?`; otherwise one match is sufficient. */
  needsBothDays: boolean;
}

/** `@every`: counted from the previous time, independent of local clocks. */
export interface IntervalCron {
  kind: 'interval';
  everyMs: number;
}

interface Bounds {
  min: number;
  max: number;
  names?: ReadonlyMap<string, number>;
  /** Explains a value that is out of bounds. */
  hint?: string;
}

const MINUTES: Bounds = { min: 0, max: 59 };
const HOURS: Bounds = { min: 0, max: 23 };
const DAYS_OF_MONTH: Bounds = { min: 1, max: 31 };
const MONTHS: Bounds = { min: 1, max: 12, names: numbered('jan feb mar apr may jun jul aug sep oct nov dec', 1) };
const DAYS_OF_WEEK: Bounds = {
  min: 0,
  max: 6,
  names: numbered('sun mon tue wed thu fri sat', 0),
  // Other implementations of cron also accept 7 for Sunday.
  hint: '; Sunday is 0',
};

const MACROS = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
]);

const ZONE_PREFIX = /^(?:CRON_)?TZ=([^ \t]*)/;
const EVERY = '@every ';
const EVERY_MS_MIN = 60_000;
/** An expression that lists every value of all fields is shorter. */
const LENGTH_MAX = 1_000;

/** Reads `text`. Throws `invalid_header` (400), `Invalid cron expression …`. */
export const parseCron: (text: string) => Cron = memo((text) => {
  const spec = trimBlanks(text);
  if (spec === '') throw invalidCron('empty spec string');
  if (spec.length > LENGTH_MAX) throw invalidCron(`longer than ${LENGTH_MAX} characters`);
  const prefix = ZONE_PREFIX.exec(spec);
  if (prefix === null) return parseTimes(spec, UTC);
  const [all, name = ''] = prefix;
  const zone = readTimeZone(name);
  if (zone === undefined) throw invalidCron(`provided bad location ${cut(name)}: unknown time zone ${cut(name)}`);
  return parseTimes(trimBlanks(spec.slice(all.length)), zone);
});

/** `Invalid cron expression <detail>`, the documented form. */
export function invalidCron(detail: string): ApiError {
  return new ApiError('invalid_header', `Invalid cron expression ${detail}`);
}

function parseTimes(spec: string, zone: TimeZone): Cron {
  if (spec.startsWith(EVERY)) return parseInterval(spec);
  if (!spec.startsWith('@')) return parseFields(spec, zone);
  const fields = MACROS.get(spec);
  if (fields === undefined) throw invalidCron(`unrecognized descriptor: ${cut(spec)}`);
  return parseFields(fields, zone);
}

function parseInterval(spec: string): IntervalCron {
  const everyMs = parseDurationMs(spec.slice(EVERY.length));
  if (everyMs === undefined) throw invalidCron(`failed to parse duration ${cut(spec)}`);
  if (everyMs < EVERY_MS_MIN) throw invalidCron(`the interval is shorter than one minute: ${cut(spec)}`);
  return { kind: 'interval', everyMs };
}

function parseFields(spec: string, zone: TimeZone): CalendarCron {
  const fields = spec.split(/[ \t]/).filter((field) => field !== '');
  if (fields.length !== 5) {
    throw invalidCron(`expected exactly 5 fields, found ${fields.length}: [${cut(fields.join(' '))}]`);
  }
  const [minute = '', hour = '', dayOfMonth = '', month = '', dayOfWeek = ''] = fields;
  const hours = [...parseList(hour, HOURS)].sort((a, b) => a - b);
  return {
    kind: 'calendar',
    zone,
    minutes: [...parseList(minute, MINUTES)].sort((a, b) => a - b),
    hours,
    isHourly: /[*?/]/.test(hour) || hours.length === 24,
    daysOfMonth: parseList(dayOfMonth, DAYS_OF_MONTH),
    months: parseList(month, MONTHS),
    daysOfWeek: parseList(dayOfWeek, DAYS_OF_WEEK),
    needsBothDays: isWildcard(dayOfMonth) || isWildcard(dayOfWeek),
  };
}

function isWildcard(field: string): boolean {
  return field.startsWith('*') || field.startsWith('?');
}

function parseList(field: string, bounds: Bounds): Set<number> {
  const values = new Set<number>();
  for (const range of field.split(',')) addRange(values, range, bounds);
  return values;
}

/** `*`, `?`, `a` or `a-b`, each with or without `/n`; `a/n` extends to the maximum. */
function addRange(values: Set<number>, range: string, bounds: Bounds): void {
  const [span = '', stepText, ...moreSteps] = range.split('/');
  if (moreSteps.length > 0) throw invalidCron(`too many slashes: ${cut(range)}`);
  const [low = '', high, ...moreHighs] = span.split('-');
  if (moreHighs.length > 0) throw invalidCron(`too many hyphens: ${cut(range)}`);
  const isEvery = span === '*' || span === '?';
  const start = isEvery ? bounds.min : numberOf(low, bounds);
  const step = stepText === undefined ? 1 : numberOf(stepText);
  const end = endOf(high, start, { bounds, isOpen: isEvery || stepText !== undefined });
  if (start < bounds.min) {
    throw invalidCron(`beginning of range (${start}) below minimum (${bounds.min}): ${cut(range)}`);
  }
  if (end > bounds.max) {
    throw invalidCron(`end of range (${end}) above maximum (${bounds.max}): ${cut(range)}${bounds.hint ?? ''}`);
  }
  if (start > end) throw invalidCron(`beginning of range (${start}) beyond end of range (${end}): ${cut(range)}`);
  if (step === 0) throw invalidCron(`step of range should be a positive number: ${cut(range)}`);
  for (let value = start; value <= end; value += step) values.add(value);
}

function endOf(high: string | undefined, start: number, where: { bounds: Bounds; isOpen: boolean }): number {
  if (high !== undefined) return numberOf(high, where.bounds);
  return where.isOpen ? where.bounds.max : start;
}

function numberOf(text: string, bounds?: Bounds): number {
  const named = bounds?.names?.get(text.toLowerCase());
  if (named !== undefined) return named;
  if (!/^\d{1,9}$/.test(text)) throw invalidCron(`failed to parse int from ${cut(text)}`);
  return Number(text);
}

function numbered(words: string, first: number): Map<string, number> {
  return new Map(words.split(' ').map((word, index) => [word, first + index]));
}

/** The part of the expression that an error text quotes. */
function cut(text: string): string {
  return text.length <= 64 ? text : `${text.slice(0, 64)}…`;
}
