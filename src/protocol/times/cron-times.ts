/** Computes the next time of a cron expression. */

import { trimBlanks } from '../headers.ts';
import { type CalendarCron, type Cron, invalidCron, parseCron } from './cron.ts';
import type { TimeZone } from './time-zone.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/**
 * The range of the search. The rarest time is 29 February on a given weekday: it occurs every 28 years, or after 40 years
 * across a century year without a leap day. A time that is not found in this range never occurs.
 */
const YEARS_AHEAD = 41;

/** Maximum offset of a time zone from UTC. */
const OFFSET_MS_MAX = 15 * HOUR_MS;

/**
 * The first time after `afterMs` (Unix ms), `undefined` if there is none. The times of an interval are counted from
 * `anchorMs`: the start of the interval, or any of its times.
 *
 * A local time that the zone's clocks skip does not occur. If the clocks show a local time twice, only the first time
 * counts, unless the expression is hourly (contract M 15.2).
 */
export function nextCronTime(cron: Cron, afterMs: number, anchorMs = afterMs): number | undefined {
  if (cron.kind === 'calendar') return nextCalendarTime(cron, afterMs);
  const steps = Math.max(0, Math.floor((afterMs - anchorMs) / cron.everyMs) + 1);
  const nextMs = anchorMs + steps * cron.everyMs;
  return nextMs - afterMs <= YEARS_AHEAD * 366 * DAY_MS ? nextMs : undefined;
}

/** Returns `text`, trimmed. Throws `invalid_header` (400), `Invalid cron expression …`, also for a time that never occurs. */
export function checkCron(text: string, nowMs: number): string {
  const cron = parseCron(text);
  if (nextCronTime(cron, nowMs) === undefined) throw invalidCron('it never occurs');
  return trimBlanks(text);
}

function nextCalendarTime(cron: CalendarCron, afterMs: number): number | undefined {
  const { zone, isHourly } = cron;
  // Local times are counted as if they were UTC.
  const localAfterMs = afterMs + zone.offsetMsAt(afterMs);
  for (const dayMs of matchingDays(cron, localAfterMs)) {
    const offsets = offsetsAround(dayMs, zone);
    if (isHourly && offsets.length > 1) {
      const timeMs = nextHourlyTime(cron, dayMs, afterMs);
      if (timeMs !== undefined) return timeMs;
      continue;
    }
    for (const localMs of localTimesOf(cron, dayMs, localAfterMs)) {
      const timeMs = firstTimeOf(localMs, offsets, zone);
      if (timeMs !== undefined && timeMs > afterMs) return timeMs;
    }
  }
  return undefined;
}

/** The first time of a local day with a clock change: every time that the clocks show counts, even a repeated time. */
function nextHourlyTime(cron: CalendarCron, dayMs: number, afterMs: number): number | undefined {
  const { before, after, atMs } = changeAround(dayMs, cron.zone);
  for (const localMs of localTimesOf(cron, dayMs, afterMs + before)) {
    if (localMs - before < atMs) return localMs - before;
    break; // All later times are after the change, too.
  }
  for (const localMs of localTimesOf(cron, dayMs, Math.max(afterMs, atMs - 1) + after)) return localMs - after;
  return undefined;
}

/** The local times of a local day that come after `localAfterMs`. */
function* localTimesOf({ hours, minutes }: CalendarCron, dayMs: number, localAfterMs: number): Generator<number> {
  for (const hour of hours) {
    const hourMs = dayMs + hour * HOUR_MS;
    if (hourMs + HOUR_MS <= localAfterMs) continue;
    for (const minute of minutes) {
      const localMs = hourMs + minute * MINUTE_MS;
      if (localMs > localAfterMs) yield localMs;
    }
  }
}

/** Local midnights of the matching days, starting with the day of `fromMs`. */
function* matchingDays(cron: CalendarCron, fromMs: number): Generator<number> {
  const from = new Date(fromMs);
  const lastYear = from.getUTCFullYear() + YEARS_AHEAD;
  let firstDay = from.getUTCDate();
  for (let month = from.getUTCMonth(), year = from.getUTCFullYear(); year <= lastYear; firstDay = 1, month += 1) {
    if (month === 12) {
      month = 0;
      year += 1;
    }
    if (!cron.months.has(month + 1)) continue;
    const monthEndMs = Date.UTC(year, month + 1, 1);
    for (let day = firstDay, dayMs = Date.UTC(year, month, day); dayMs < monthEndMs; day += 1, dayMs += DAY_MS) {
      if (fitsDay(cron, day, new Date(dayMs).getUTCDay())) yield dayMs;
    }
  }
}

function fitsDay({ daysOfMonth, daysOfWeek, needsBothDays }: CalendarCron, day: number, weekday: number): boolean {
  const fitsMonth = daysOfMonth.has(day);
  const fitsWeek = daysOfWeek.has(weekday);
  return needsBothDays ? fitsMonth && fitsWeek : fitsMonth || fitsWeek;
}

/** The clock change on or next to a local day that has two offsets. */
function changeAround(dayMs: number, zone: TimeZone): { before: number; after: number; atMs: number } {
  let earlierMs = dayMs - OFFSET_MS_MAX;
  let atMs = dayMs + DAY_MS + OFFSET_MS_MAX;
  const before = zone.offsetMsAt(earlierMs);
  const after = zone.offsetMsAt(atMs);
  while (atMs - earlierMs > 1) {
    const middleMs = Math.floor((earlierMs + atMs) / 2);
    if (zone.offsetMsAt(middleMs) === before) earlierMs = middleMs;
    else atMs = middleMs;
  }
  return { before, after, atMs };
}

/** The offsets that a local day may have: one, or two with a clock change, the larger offset first. */
function offsetsAround(dayMs: number, zone: TimeZone): number[] {
  const before = zone.offsetMsAt(dayMs - OFFSET_MS_MAX);
  const after = zone.offsetMsAt(dayMs + DAY_MS + OFFSET_MS_MAX);
  return before === after ? [before] : [Math.max(before, after), Math.min(before, after)];
}

/** The first time at which clocks show `localMs`; `undefined` if clocks skip it. Larger offsets give earlier times. */
function firstTimeOf(localMs: number, offsets: readonly number[], zone: TimeZone): number | undefined {
  const [only] = offsets;
  if (only !== undefined && offsets.length === 1) return localMs - only;
  for (const offset of offsets) {
    if (zone.offsetMsAt(localMs - offset) === offset) return localMs - offset;
  }
  return undefined;
}
