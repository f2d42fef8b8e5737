/** The time of a worker between the measurements of its heartbeats. */
import { expect, test } from 'vitest';
import { DatabaseClock } from '../../src/engine/workers/database-clock.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

const DATABASE_MS = 1_900_000_000_000;

/** A clock that requested the time of the database `tookMs` ago, and has just received `nowMs`. */
async function measured({
  tookMs = 0,
  nowMs = DATABASE_MS,
} = {}): Promise<{ machine: SimulatedClock; clock: DatabaseClock }> {
  const machine = new SimulatedClock();
  const clock = new DatabaseClock(machine);
  const askedAtMs = clock.elapsedMs;
  await machine.advanceBy(tookMs);
  clock.correct(nowMs, askedAtMs);
  return { machine, clock };
}

test('is that of the machine until the first measurement', () => {
  const machine = new SimulatedClock();
  expect(new DatabaseClock(machine).nowMs()).toBe(machine.nowMs());
});

test('continues with the elapsed time, whatever the clock of the machine is set to', async () => {
  const { machine, clock } = await measured();
  await machine.advanceBy(1_500);
  machine.jumpBy(-3_600_000);
  expect(clock.nowMs()).toBe(DATABASE_MS + 1_500);
});

test('first assumes that the database has read its time just now, since it is no earlier than that', async () => {
  const { clock } = await measured({ tookMs: 100 });
  expect(clock.nowMs()).toBe(DATABASE_MS);
});

test('does not take a more accurate response after a slow first one for a clock that was set back', async () => {
  const { machine, clock } = await measured({ tookMs: 14_000 });
  clock.correct(DATABASE_MS, machine.elapsedMs);
  expect([clock.nowMs(), clock.leadMs]).toEqual([DATABASE_MS, 0]);
});

test('is not changed by a response that it may agree with, however slow that was', async () => {
  const { machine, clock } = await measured();
  const askedAtMs = clock.elapsedMs;
  await machine.advanceBy(8_000);
  clock.correct(DATABASE_MS + 100, askedAtMs);
  expect(clock.nowMs()).toBe(DATABASE_MS + 8_000);
});

test.for([
  { showed: DATABASE_MS + 6_000, is: DATABASE_MS + 6_000 },
  { showed: DATABASE_MS + 500, is: DATABASE_MS + 510 },
])('is changed by a response that it cannot agree with, by no more than needed: $showed', async ({ showed, is }) => {
  const { machine, clock } = await measured();
  await machine.advanceBy(1_000);
  const askedAtMs = clock.elapsedMs;
  await machine.advanceBy(10);
  clock.correct(showed, askedAtMs);
  expect(clock.nowMs()).toBe(is);
});

test('continues when the clock of the database is set back, whose own time stays available', async () => {
  const { machine, clock } = await measured();
  const jumps: number[] = [];
  clock.onJump((byMs) => jumps.push(byMs));
  await machine.advanceBy(1_000);
  clock.correct(DATABASE_MS + 1_000 - 3_600_000, clock.elapsedMs);
  expect(clock.nowMs()).toBe(DATABASE_MS + 1_000);
  expect(clock.wallMs()).toBe(DATABASE_MS + 1_000 - 3_600_000);
  expect([clock.leadMs, jumps]).toEqual([3_600_000, [-3_600_000]]);
});

test('is ahead by whole milliseconds, though the elapsed time has fractions', () => {
  let elapsedMs = 0.25;
  const machine = Object.create(new SimulatedClock(), { elapsedMs: { get: () => elapsedMs } });
  const clock = new DatabaseClock(machine);
  clock.correct(DATABASE_MS, elapsedMs);
  elapsedMs += 1_000.625;
  clock.correct(DATABASE_MS - 9_000, elapsedMs - 0.125);
  expect([clock.nowMs(), clock.leadMs].map((ms) => Number.isInteger(ms))).toEqual([true, true]);
  expect(clock.leadMs).toBeGreaterThan(9_999);
});

test('adopts the time of workers that are ahead of the clock of the database, not that of those that differ by milliseconds', async () => {
  const { clock } = await measured();
  clock.correct(DATABASE_MS, clock.elapsedMs, 1_000);
  expect(clock.nowMs()).toBe(DATABASE_MS);
  clock.correct(DATABASE_MS, clock.elapsedMs, 3_600_000);
  expect(clock.nowMs()).toBe(DATABASE_MS + 3_600_000);
});
