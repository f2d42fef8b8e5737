/** What time does the engine count with, when somebody sets the clock of its machine? */
import { expect, test } from 'vitest';
import { SteadyClock } from '../../src/engine/steady-clock.ts';
import { SimulatedClock } from '../../src/testing/simulated-clock.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

function opened() {
  const machine = new SimulatedClock();
  return { machine, startMs: machine.wallMs(), clock: new SteadyClock(machine) };
}

test('goes on from where it was when the wall clock is set back, which itself is shown as it is', async () => {
  const { machine, clock, startMs } = opened();
  await machine.advanceBy(1_000);
  machine.jumpBy(-HOUR_MS);
  await machine.advanceBy(500);
  expect(clock.nowMs()).toBe(startMs + 1_500);
  expect(clock.wallMs()).toBe(startMs + 1_500 - HOUR_MS);
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

test('follows a wall clock that is corrected by moments, and tells nobody', () => {
  const { machine, clock, startMs } = opened();
  const jumps: number[] = [];
  clock.onJump((byMs) => jumps.push(byMs));
  machine.jumpBy(-1_500);
  expect(clock.nowMs()).toBe(startMs - 1_500);
  expect(jumps).toEqual([]);
});

test('tells of each jump once, by how much it was', () => {
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
