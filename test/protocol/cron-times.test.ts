/**
 * The calendar against a scan of every minute on the clocks that `Intl` shows, at the times when clocks are set,
 * and against another implementation where both have the same rules.
 */
import { Cron as Croner } from 'croner';
import { describe, expect, it } from 'vitest';
import { parseCron } from '../../src/protocol/times/cron.ts';
import { nextCronTime } from '../../src/protocol/times/cron-times.ts';
import { SeededRandom } from '../support/seeded-random.ts';

const SEED = 13;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const FROM_MS = Date.UTC(2024, 0, 1);
const TO_MS = Date.UTC(2031, 0, 1);

/** Half hours, midnights, quarter hours, two hours at once, the other way round, in the middle of Ramadan; and no change at all. */
const PECULIAR = [
  ...['Australia/Lord_Howe', 'Africa/Cairo', 'Asia/Beirut', 'America/Santiago', 'Pacific/Chatham', 'Antarctica/Troll'],
  ...['Europe/Dublin', 'Africa/Casablanca', 'Asia/Gaza', 'America/Havana', 'America/St_Johns', 'Asia/Kathmandu'],
];

/** One minute as the clocks of a zone show it. */
interface Minute {
  atMs: number;
  minute: number;
  hour: number;
  day: number;
  month: number;
  weekday: number;
  /** False when the clocks have shown the same before. */
  isFirst: boolean;
}

function scan(zone: string, fromMs: number, toMs: number): Minute[] {
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    weekday: 'short',
    hour: 'numeric',
    minute: 'numeric',
  });
  const seen = new Set<string>();
  const minutes: Minute[] = [];
  for (let atMs = fromMs; atMs <= toMs; atMs += MINUTE_MS) {
    const text = format.format(atMs);
    const [, weekday = '', day, month, hour, minute] = /^(\w+), (\d+)\/(\d+)\/\d+, (\d+):(\d+)$/.exec(text) ?? [];
    minutes.push({
      atMs,
      minute: Number(minute),
      hour: Number(hour),
      day: Number(day),
      month: Number(month),
      weekday: ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'].indexOf(weekday),
      isFirst: !seen.has(text),
    });
    seen.add(text);
  }
  return minutes;
}

/** Days within which the clocks of a zone are set. */
function daysOfChange(zone: string): number[] {
  const format = new Intl.DateTimeFormat('en-GB', { timeZone: zone, timeZoneName: 'longOffset' });
  const offsetAt = (atMs: number) => format.formatToParts(atMs).find(({ type }) => type === 'timeZoneName')?.value;
  const days: number[] = [];
  let offset = offsetAt(FROM_MS);
  for (let dayMs = FROM_MS; dayMs < TO_MS; dayMs += DAY_MS) {
    const offsetBefore = offset;
    offset = offsetAt(dayMs + DAY_MS);
    if (offset !== offsetBefore) days.push(dayMs);
  }
  return days;
}

type Field = 'minute' | 'hour' | 'day' | 'month' | 'weekday';

/** An expression, and what it means, made together and apart from the parser. */
interface Expression {
  text: string;
  /** Whether it runs again when the clocks show an hour again. */
  isRepeated: boolean;
  matches: (minute: Minute) => boolean;
}

function randomExpression(random: SeededRandom): Expression {
  const fields: Field[] = ['minute', 'hour', 'day', 'month', 'weekday'];
  const made = fields.map((field) => randomField(random, field));
  const [minute, hour, day, month, weekday] = made;
  if (!minute || !hour || !day || !month || !weekday) throw new Error('a field is missing');
  const isOneEnough = !day.text.startsWith('*') && !weekday.text.startsWith('*');
  return {
    text: made.map(({ text }) => text).join(' '),
    isRepeated: /[*/]/.test(hour.text),
    matches: (at) => {
      const fitsDay = day.values.has(at.day);
      const fitsWeekday = weekday.values.has(at.weekday);
      const fits = isOneEnough ? fitsDay || fitsWeekday : fitsDay && fitsWeekday;
      return fits && minute.values.has(at.minute) && hour.values.has(at.hour) && month.values.has(at.month);
    },
  };
}

function randomField(random: SeededRandom, field: Field): { text: string; values: Set<number> } {
  const min = field === 'day' || field === 'month' ? 1 : 0;
  const max = { minute: 59, hour: 23, day: 31, month: 12, weekday: 6 }[field];
  const range = (first: number, last: number, step: number) => {
    const values = new Set<number>();
    for (let value = first; value <= last; value += step) values.add(value);
    return values;
  };
  const step = random.int(1, Math.ceil(max / 3));
  const first = random.int(min, max);
  const last = random.int(first, max);
  switch (
    random.weighted({ all: field === 'minute' || field === 'hour' ? 2 : 8, one: 3, step: 2, range: 2, list: 2 })
  ) {
    case 'all':
      return { text: '*', values: range(min, max, 1) };
    case 'one':
      return { text: `${first}`, values: new Set([first]) };
    case 'step':
      return { text: `*/${step}`, values: range(min, max, step) };
    case 'range':
      return { text: `${first}-${last}/${step}`, values: range(first, last, step) };
    case 'list':
      return { text: `${last},${first}`, values: new Set([first, last]) };
  }
}

/** Every time from `fromMs` up to `toMs`, as `nextCronTime` gives one after the other. */
function occurrences(text: string, fromMs: number, toMs: number): number[] {
  const cron = parseCron(text);
  const found: number[] = [];
  let atMs = fromMs;
  while (true) {
    const nextMs = nextCronTime(cron, atMs);
    if (nextMs === undefined || nextMs > toMs) return found;
    expect(nextMs, `${text} does not go on after ${atMs}`).toBeGreaterThan(atMs);
    found.push(nextMs);
    atMs = nextMs;
  }
}

function sampledZones(random: SeededRandom): string[] {
  const all = Intl.supportedValuesOf('timeZone');
  return [...PECULIAR, ...Array.from({ length: 8 }, () => random.choose(all))];
}

function expectSameAsScan(zone: string, dayMs: number, random: SeededRandom): void {
  const minutes = scan(zone, dayMs - DAY_MS, dayMs + 2 * DAY_MS);
  for (let round = 0; round < 12; round += 1) {
    const { text, matches, isRepeated } = randomExpression(random);
    const fromMs = dayMs - random.int(0, 60 * 12) * MINUTE_MS - random.int(0, MINUTE_MS - 1);
    const toMs = dayMs + 2 * DAY_MS;
    const scanned = minutes
      .filter((minute) => (minute.isFirst || isRepeated) && matches(minute))
      .map(({ atMs }) => atMs);
    expect(occurrences(`CRON_TZ=${zone} ${text}`, fromMs, toMs), `${zone}: ${text} after ${fromMs}`).toEqual(
      scanned.filter((atMs) => atMs > fromMs && atMs <= toMs),
    );
  }
}

describe('the times of a cron expression', () => {
  it('follow the clocks of the zone, and occur once for a fixed hour, when clocks change', () => {
    const random = new SeededRandom(SEED);
    for (const zone of sampledZones(random)) {
      const days = daysOfChange(zone);
      expectSameAsScan(zone, days.length === 0 ? FROM_MS : random.choose(days), random);
    }
  });

  it.each([
    ['America/Sao_Paulo', Date.UTC(2018, 10, 4)], // midnight did not exist
    ['Africa/Cairo', Date.UTC(2024, 3, 26)],
    ['Australia/Lord_Howe', Date.UTC(2026, 9, 3)],
    ['America/New_York', Date.UTC(2026, 10, 1)],
    ['Pacific/Apia', Date.UTC(2011, 11, 30)], // the whole day did not exist
  ])('are so in %s', (zone, dayMs) => {
    expectSameAsScan(zone, dayMs, new SeededRandom(SEED));
    expect(occurrences(`CRON_TZ=${zone} * * * * *`, dayMs - DAY_MS, dayMs + DAY_MS)).toEqual(
      scan(zone, dayMs - 2 * DAY_MS, dayMs + DAY_MS)
        .filter(({ atMs }) => atMs > dayMs - DAY_MS)
        .map(({ atMs }) => atMs),
    );
  });

  it('are the same as those of another implementation in UTC', () => {
    const random = new SeededRandom(SEED);
    for (let round = 0; round < 300; round += 1) {
      const { text } = randomExpression(random);
      const fromMs = random.int(FROM_MS, TO_MS);
      const needsBothDays = / \*\S* \S+ \S+$| \*\S*$/.test(text);
      const other = new Croner(text, { timezone: 'UTC', domAndDow: needsBothDays, mode: '5-part', paused: true });
      const expected = other.nextRuns(5, new Date(fromMs)).map((date) => date.getTime());
      let atMs: number | undefined = fromMs;
      for (const expectedMs of expected) {
        atMs = nextCronTime(parseCron(text), atMs ?? 0);
        expect(atMs, `${text} after ${fromMs}`).toBe(expectedMs);
      }
    }
  });

  it('are searched quickly if there are none', () => {
    const impossible = ['0 0 30 2 *', '* * 31 4,6,9,11 *', 'CRON_TZ=America/New_York * 2 8-14 3 */7'].map(parseCron);
    const startedAt = performance.now();
    for (let round = 0; round < 10; round += 1) {
      for (const cron of impossible) expect(nextCronTime(cron, FROM_MS)).toBeUndefined();
    }
    // Milliseconds each; the limit only has to tell them from a search that goes on for ever.
    expect((performance.now() - startedAt) / 30).toBeLessThan(100);
  });
});

/** Clocks in Berlin show 02:00 to 02:59 twice on 25 October 2026: from 00:00 UTC on, and again from 01:00 UTC on. */
describe('an expression that is created during a repeated hour', () => {
  it.each([
    ['45 2 * * *', '2026-10-25T01:30:00Z', '2026-10-26T01:45:00.000Z'],
    ['*/15 2 * * *', '2026-10-25T01:10:00Z', '2026-10-26T01:00:00.000Z'],
    ['45 2,3 * * *', '2026-10-25T01:30:00Z', '2026-10-25T02:45:00.000Z'],
    ['45 2 * * *', '2026-10-25T00:30:00Z', '2026-10-25T00:45:00.000Z'],
    ['15 2 * * *', '2026-10-25T00:30:00Z', '2026-10-26T01:15:00.000Z'],
    ['15 * * * *', '2026-10-25T00:30:00Z', '2026-10-25T01:15:00.000Z'],
    ['45 */2 * * *', '2026-10-25T00:50:00Z', '2026-10-25T01:45:00.000Z'],
  ])('%s at %s means %s next', (text, after, expected) => {
    const nextMs = nextCronTime(parseCron(`CRON_TZ=Europe/Berlin ${text}`), Date.parse(after));
    expect(nextMs !== undefined && new Date(nextMs).toISOString()).toBe(expected);
  });
});
