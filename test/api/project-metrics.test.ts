/** The metrics of one project, which Prometheus reads with the token of the project. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { PROJECT_METRICS } from '../../src/api/project/overview.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { parseExposition } from '../telemetry/metrics/exposition.ts';
import { openWorld, type World } from './support/world.ts';

const START_MS = Date.UTC(2026, 0, 1);

let clock: SimulatedClock;
let world: World;
beforeEach(async () => {
  clock = new SimulatedClock(START_MS);
  world = await openWorld({ clock }, { clock });
});
afterEach(async () => {
  const closed = world.close();
  await clock.advanceBy(1_000); // what hangs is cut off when its time is over
  await closed;
});

const ask = () => world.ask({ method: 'GET', url: '/v2/waypost/metrics' });

/** Those that are not 0, without what their names have in common. */
async function numbersOf(): Promise<Record<string, number>> {
  const { status, text } = await ask();
  expect(status).toBe(200);
  const samples = [...parseExposition(text).values()].flatMap((family) => [...family.samples]);
  const some = samples.filter(([, value]) => value !== 0);
  return Object.fromEntries(some.map(([name, value]) => [name.replace('waypost_project_', ''), value]));
}

it('are what is unfinished, in the DLQ, and was done in the last whole minute', async () => {
  await world.publish('https://ok.example/');
  await world.bury('https://fail.example/');
  await world.bury('https://fail.example/');
  await world.publish('https://hangs.example/');
  await world.publish('https://ok.example/', { 'upstash-delay': '1h' });
  await clock.advanceBy(14_000);
  const backlog = { 'messages{state="waiting"}': 1, 'messages{state="active"}': 1, 'dlq_entries{kind="message"}': 2 };
  expect(await numbersOf()).toEqual(backlog);
  await clock.advanceBy(61_000);
  expect(await numbersOf()).toEqual({
    ...backlog,
    'last_minute_messages{result="accepted"}': 5,
    'last_minute_messages{result="delivered"}': 1,
    'last_minute_messages{result="dead"}': 2,
    'last_minute_messages{result="attempt_failed"}': 2,
  });
  await clock.advanceBy(60_000);
  expect(await numbersOf()).toEqual(backlog);
});

it('say for how long the oldest that is due has waited', async () => {
  await world.ask({ method: 'POST', url: '/v2/queues', payload: { queueName: 'q', parallelism: 1 } });
  await world.ask({ method: 'POST', url: '/v2/queues/q/pause' });
  await world.ask({ method: 'POST', url: '/v2/enqueue/q/https://ok.example/' });
  await clock.advanceBy(14_000);
  expect(await numbersOf()).toEqual({ 'messages{state="held"}': 1, oldest_due_seconds: 14 });
});

it('are the same series whatever there is, each with its meaning', async () => {
  const shapeOf = async () =>
    [...parseExposition((await ask()).text)].map(([name, { kind, help, samples }]) => [
      name,
      kind,
      help,
      ...samples.keys(),
    ]);
  const before = await shapeOf();
  expect(before.map(([name, kind, help]) => [name, kind, help])).toEqual(
    PROJECT_METRICS.map(({ name, meaning }) => [name, 'gauge', meaning]),
  );
  await world.bury('https://fail.example/canary', { 'upstash-label': 'canary' });
  expect(await shapeOf()).toEqual(before);
});
