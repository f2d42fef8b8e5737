/** Rates and latencies of a project by the minute. Our own addition. */
import { type Static, Type } from '@sinclair/typebox';
import { BOUNDS_MS, MINUTE_MS, type Minute, minuteOf } from '../engine/minutes/minute.ts';
import { type Answer, answer } from './answer.ts';
import { CURSOR, time } from './parameter-kinds.ts';
import { into, readQuery, wholeNumber } from './parameters.ts';
import { type Call, type Route, row, type Services } from './route.ts';
import { Count, exactly, Ms, Text } from './schemas.ts';

/** A day. */
const MINUTES_MAX = 1_440;

const HOUR_MS = 3_600_000;

const QUERY = [
  into(
    'fromMs',
    time('fromDate', 'From the minute of this Unix time in milliseconds; by default the hour up to toDate.'),
  ),
  into('toMs', time('toDate', 'Up to the minute of this Unix time in milliseconds; by default now.')),
  CURSOR,
];

const Histogram = (description: string) =>
  Type.Array(Count, { minItems: BOUNDS_MS.length + 1, maxItems: BOUNDS_MS.length + 1, description });

const MinuteSchema = exactly(
  {
    time: Type.Integer({ ...Ms, description: 'beginning of the minute, Unix time in milliseconds' }),
    accepted: Type.Integer({ ...Count, description: 'new messages: published, scheduled, callbacks, steps of runs' }),
    attempts: Type.Integer({ ...Count, description: 'delivered and failedAttempts together' }),
    delivered: Count,
    failedAttempts: Count,
    dead: Type.Integer({ ...Count, description: 'messages that failed for good' }),
    runsStarted: Count,
    runsSucceeded: Count,
    runsFailed: Count,
    runsCanceled: Count,
    latency: Histogram('how many attempts took how long, by bucket'),
    lag: Histogram('how many messages had their first attempt how long after they were due, by bucket'),
  },
  'Minute',
);

export const MinutesSchema = exactly({
  bounds: Type.Array(Count, {
    description: 'upper bounds of the buckets in milliseconds, each included; the last bucket has none',
  }),
  minutes: Type.Array(MinuteSchema, { description: 'those in which something happened, oldest first' }),
  cursor: Type.Optional(Text),
});

export function minuteRoutes({ engine, clock }: Services): Route[] {
  async function list({ projectId, rawQuery }: Call): Promise<Answer> {
    const { toMs = clock.nowMs(), fromMs = Math.max(0, toMs - HOUR_MS), cursor } = readQuery(rawQuery, QUERY);
    const first = cursor === undefined ? minuteOf(fromMs) : wholeNumber('cursor', cursor) + MINUTE_MS;
    const page = { fromMs: first, toMs, count: MINUTES_MAX + 1 };
    // One minute more than is shown is read, to know whether there are more.
    const found = await engine.storeOf(projectId).minutes.listMinutes(page);
    const shown = found.slice(0, MINUTES_MAX);
    const last = shown.at(-1);
    return answer(200, {
      bounds: BOUNDS_MS,
      minutes: shown.map(minuteView),
      cursor: last && found.length > shown.length ? String(last.atMs) : undefined,
    });
  }

  return [
    {
      ...row('read', 'GET', '/v2/waypost/minutes', 'listMinutes'),
      summary: 'Lists what was accepted, attempted and delivered by the minute, and how long it took.',
      takes: { query: QUERY },
      answers: { 200: MinutesSchema },
      handle: list,
    },
  ];
}

function minuteView({ atMs, ...counts }: Minute): Static<typeof MinuteSchema> {
  return { time: atMs, attempts: counts.delivered + counts.failedAttempts, ...counts };
}
