/** Rates and latencies by the minute, as a client reads them. */
import { Value } from '@sinclair/typebox/value';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { MinutesSchema, minuteRoutes } from '../../src/api/project/overview.ts';
import type { Call, Services } from '../../src/api/route.ts';
import { emptyMinute } from '../../src/engine/minutes/counts.ts';
import type { Outcome } from '../../src/engine/model.ts';
import { newHeaderMap } from '../../src/protocol/headers.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { type Json, openWorld, type World } from './support/world.ts';

const MINUTE_MS = 60_000;
const START_MS = Date.UTC(2026, 0, 1);

let clock: SimulatedClock;
let world: World;
beforeEach(async () => {
  clock = new SimulatedClock(START_MS);
  const attempt = (status: number, afterMs: number) =>
    new Promise<Outcome>((resolve) => {
      const outcome = { kind: 'responded', status, header: newHeaderMap(), body: Buffer.from('') } as const;
      clock.startTimer(afterMs, () => resolve(outcome));
    });
  const delivery = {
    attempt: ({ message: { url } }: { message: { url: string } }) =>
      url.startsWith('https://ok.') ? attempt(200, 30) : attempt(500, 3_000),
    close: () => Promise.resolve(),
  };
  world = await openWorld({ clock }, { clock, delivery });
});
afterEach(() => world.close());

async function list(query = ''): Promise<Json> {
  const { status, json, text } = await world.ask({ method: 'GET', url: `/v2/waypost/minutes${query}` });
  expect(status, text).toBe(200);
  expect(Value.Check(MinutesSchema, json), text).toBe(true);
  return json;
}

/** Publishes a message to an endpoint that responds, in the minute that begins `minute` minutes after the start. */
async function publishAt(minute: number): Promise<void> {
  await clock.advanceBy(START_MS + minute * MINUTE_MS - clock.nowMs());
  await world.publish('https://ok.example/');
}

const timesOf = ({ minutes }: Json): number[] =>
  minutes.map(({ time }: { time: number }) => (time - START_MS) / MINUTE_MS);

it('have what was accepted, attempted, delivered and buried, and how long attempts took', async () => {
  await world.publish('https://ok.example/');
  await world.publish('https://fail.example/', { 'upstash-retries': '0' });
  await clock.advanceBy(MINUTE_MS);
  expect(await list()).toEqual({
    bounds: [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 10000, 60000],
    minutes: [
      {
        time: START_MS,
        accepted: 2,
        attempts: 2,
        delivered: 1,
        failedAttempts: 1,
        dead: 1,
        runsStarted: 0,
        runsSucceeded: 0,
        runsFailed: 0,
        runsCanceled: 0,
        latency: [0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0],
        lag: [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
      },
    ],
  });
});

it('agree with the log', async () => {
  for (const host of ['ok', 'fail', 'ok']) await world.publish(`https://${host}.example/`, { 'upstash-retries': '2' });
  await clock.advanceBy(3_600_000);
  const { json } = await world.ask({ method: 'GET', url: '/v2/logs' });
  const logged = new Map<string, number>();
  for (const { state, time } of json.logs) {
    const name = `${state} ${time - (time % MINUTE_MS)}`;
    logged.set(name, (logged.get(name) ?? 0) + 1);
  }
  const { minutes } = await list(`?fromDate=0`);
  expect(minutes.length).toBeGreaterThan(1);
  for (const { time, accepted, delivered, failedAttempts, dead } of minutes) {
    const counted = { CREATED: accepted, DELIVERED: delivered, ERROR: failedAttempts, FAILED: dead };
    for (const [state, count] of Object.entries(counted)) {
      expect([state, logged.get(`${state} ${time}`) ?? 0]).toEqual([state, count]);
    }
  }
});

it('are those of the last hour without bounds, and of the minutes that bounds lie in with them', async () => {
  for (const minute of [0, 30, 61, 62, 63]) await publishAt(minute);
  await clock.advanceBy(MINUTE_MS);
  expect(timesOf(await list())).toEqual([30, 61, 62, 63]);
  const at = (minute: number): number => START_MS + minute * MINUTE_MS;
  expect(timesOf(await list(`?toDate=${at(62) + 1}`))).toEqual([30, 61, 62]);
  expect(timesOf(await list(`?fromDate=${at(30) + 59_999}&toDate=${at(62) - 1}`))).toEqual([30, 61]);
});

it('come a day at a time, and the cursor of a page leads to the next', async () => {
  const stored = Array.from({ length: 2_882 }, (_, index) => emptyMinute(START_MS + index * MINUTE_MS));
  const listMinutes = async ({ fromMs, toMs, count }: { fromMs: number; toMs: number; count: number }) =>
    stored.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs).slice(0, count);
  const engine = { storeOf: () => ({ minutes: { listMinutes } }) };
  const [list] = minuteRoutes({ engine, clock } as unknown as Services);
  if (!list) throw new Error('there is no such route');
  const page = async (cursor: string): Promise<Json> => {
    const rawQuery = `fromDate=${START_MS}&toDate=${START_MS + 1e9}${cursor}`;
    const { json } = await list.handle({ projectId: 1, rawQuery } as Call);
    return JSON.parse(json);
  };
  const pages = [await page('')];
  while (pages.at(-1).cursor !== undefined) pages.push(await page(`&cursor=${pages.at(-1).cursor}`));
  expect(pages.map((each) => each.minutes.length)).toEqual([1_440, 1_440, 2]);
  expect(pages.flatMap(timesOf)).toEqual(stored.map((_, index) => index));
});

it('are refused for a time or a cursor that is none', async () => {
  for (const query of ['fromDate=yesterday', 'toDate=1.5', 'cursor=x']) {
    const { status, json } = await world.ask({ method: 'GET', url: `/v2/waypost/minutes?${query}` });
    expect([status, json.error]).toEqual([
      400,
      `invalid query parameter ${query.split('=')[0]}: a whole number is needed`,
    ]);
  }
});
