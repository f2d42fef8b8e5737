/** The time of the engine when the clock of its machine is set. */
import { expect, test } from 'vitest';
import { ClockLead, LEAD_MS_MAX, SteadyClock, withWallTime } from '../../src/engine/workers/steady-clock.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

function opened() {
  const machine = new SimulatedClock();
  return { machine, startMs: machine.wallMs(), clock: new SteadyClock(machine) };
}

test('continues when the wall clock is set back, whose own time stays available', async () => {
  const { machine, clock, startMs } = opened();
  await machine.advanceBy(1_000);
  machine.jumpBy(-HOUR_MS);
  await machine.advanceBy(500);
  expect(clock.nowMs()).toBe(startMs + 1_500);
  expect(clock.wallMs()).toBe(startMs + 1_500 - HOUR_MS);
});

test('is ahead of the wall clock by its lead, and not behind by the time between two readings', () => {
  let wallMs = 1_000;
  const clock = new SteadyClock({ wallMs: () => wallMs++, elapsedMs: 0, startTimer: () => ({ cancel: () => {} }) });
  clock.nowMs();
  expect(clock.leadMs).toBe(0);
  wallMs -= HOUR_MS;
  clock.nowMs();
  expect(clock.leadMs).toBe(HOUR_MS - 1);
});

test('follows the wall clock forward', () => {
  const { machine, clock, startMs } = opened();
  machine.jumpBy(HOUR_MS);
  expect(clock.nowMs()).toBe(startMs + HOUR_MS);
});

test('is the wall clock again once that is set right, and no further ahead', () => {
  const { machine, clock, startMs } = opened();
  machine.jumpBy(-HOUR_MS);
  clock.nowMs();
  machine.jumpBy(HOUR_MS);
  expect(clock.nowMs()).toBe(startMs);
  machine.jumpBy(HOUR_MS);
  expect(clock.nowMs()).toBe(startMs + HOUR_MS);
});

test('adds up several jumps, and follows one of more than a day', () => {
  const { machine, clock, startMs } = opened();
  machine.jumpBy(-20 * HOUR_MS);
  clock.nowMs();
  machine.jumpBy(-3 * HOUR_MS);
  expect(clock.nowMs()).toBe(startMs);
  machine.jumpBy(-2 * DAY_MS);
  expect(clock.nowMs()).toBe(startMs - 23 * HOUR_MS - 2 * DAY_MS);
});

test('is a day ahead of the wall clock at most', () => {
  const { machine, clock, startMs } = opened();
  machine.jumpBy(-LEAD_MS_MAX);
  expect(clock.nowMs()).toBe(startMs);
  machine.jumpBy(-2_000);
  expect(clock.nowMs()).toBe(startMs - LEAD_MS_MAX - 2_000);
});

test('follows a wall clock that is corrected by milliseconds, and reports nothing', () => {
  const { machine, clock, startMs } = opened();
  const jumps: number[] = [];
  clock.onJump((byMs) => jumps.push(byMs));
  machine.jumpBy(-1_500);
  expect(clock.nowMs()).toBe(startMs - 1_500);
  expect(jumps).toEqual([]);
});

test('reports each jump once, with its size', () => {
  const { machine, clock } = opened();
  const jumps: number[] = [];
  clock.onJump((byMs) => jumps.push(byMs));
  for (const byMs of [-HOUR_MS, 2 * HOUR_MS]) {
    machine.jumpBy(byMs);
    clock.nowMs();
    clock.nowMs();
  }
  expect(jumps).toEqual([-HOUR_MS, 2 * HOUR_MS]);
});

test('treats two seconds as a jump', () => {
  const { machine, clock, startMs } = opened();
  machine.jumpBy(-2_000);
  expect(clock.nowMs()).toBe(startMs);
});

test('adopts the time of others that are at least two seconds further ahead of the same wall clock, but not by more than a day', () => {
  const lead = new ClockLead();
  const leadsMs = [1_999, 2_000, 1_000, LEAD_MS_MAX, LEAD_MS_MAX + 2_000].map((leadMs) => {
    lead.noteOthers(leadMs);
    return lead.ms;
  });
  expect(leadsMs).toEqual([0, 2_000, 2_000, LEAD_MS_MAX, 0]);
});

test('has a view by the wall clock, which reports its jumps and uses the same timers', async () => {
  const { machine, clock, startMs } = opened();
  const wall = withWallTime(clock);
  const told: string[] = [];
  wall.onJump((byMs) => told.push(`jump by ${byMs}`));
  wall.startTimer(1_000, () => told.push('timer'));
  machine.jumpBy(-HOUR_MS);
  clock.nowMs();
  expect([wall.nowMs(), wall.wallMs()]).toEqual([startMs - HOUR_MS, startMs - HOUR_MS]);
  const beforeMs = wall.elapsedMs;
  await machine.advanceBy(1_000);
  expect(wall.elapsedMs - beforeMs).toBe(1_000);
  expect(told).toEqual([`jump by ${-HOUR_MS}`, 'timer']);
});
