/** When an alarm wakes a loop, whatever is done to the clock. */
import { expect, test } from 'vitest';
import { Alarm } from '../../src/engine/loops/alarm.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { NOW_MS } from './fixtures.ts';

/** `rings`: milliseconds since the start. */
function bench() {
  const clock = new SimulatedClock(NOW_MS);
  const rings: number[] = [];
  const alarm = new Alarm(clock, () => rings.push(clock.elapsedMs));
  return { clock, alarm, rings };
}

test('an alarm rings once, at its time', async () => {
  const { clock, alarm, rings } = bench();
  alarm.setAt(NOW_MS + 7_000);
  alarm.setAt(NOW_MS + 7_000);
  expect(alarm.isSet).toBe(true);
  await clock.advanceBy(60_000);
  expect(rings).toEqual([7_000]);
  expect(alarm.isSet).toBe(false);
});

test('an alarm for a past time rings at once, but not before its caller returns', async () => {
  const { clock, alarm, rings } = bench();
  alarm.setAt(NOW_MS - 1);
  expect(rings).toEqual([]);
  await clock.advanceBy(0);
  expect(rings).toEqual([0]);
});

test('an alarm that is set again forgets its former time, and one that is set to never or cancelled does not ring', async () => {
  const { clock, alarm, rings } = bench();
  alarm.setAt(NOW_MS + 1_000);
  alarm.setIn(5_000);
  await clock.advanceBy(6_000);
  expect(rings).toEqual([5_000]);
  alarm.setIn(1_000);
  alarm.setAt(Infinity);
  expect(alarm.isSet).toBe(false);
  await clock.advanceBy(60_000);
  alarm.setIn(1_000);
  alarm.cancel();
  await clock.advanceBy(60_000);
  expect(rings).toEqual([5_000]);
});

test('an alarm for a time of day rings after half a minute at the latest, so that a jump of the clock is noticed', async () => {
  const { clock, alarm, rings } = bench();
  alarm.setAt(NOW_MS + 3_600_000);
  clock.jumpBy(3_600_000);
  await clock.advanceBy(60_000);
  expect(rings).toEqual([30_000]);
});

test('an alarm that is set again to its current time does not ring later', async () => {
  const { clock, alarm, rings } = bench();
  alarm.setAt(NOW_MS + 3_600_000);
  await clock.advanceBy(20_000);
  alarm.setAt(NOW_MS + 3_600_000);
  await clock.advanceBy(20_000);
  expect(rings).toEqual([30_000]);
});

test('an alarm for a span of time rings when it has passed, whatever the clock shows', async () => {
  const { clock, alarm, rings } = bench();
  alarm.setIn(3_600_000);
  clock.jumpBy(7_200_000);
  await clock.advanceBy(3_599_999);
  expect(rings).toEqual([]);
  await clock.advanceBy(1);
  expect(rings).toEqual([3_600_000]);
});

test('an alarm on stopped time, which nobody sets, rings once in a year, and not each half minute', () => {
  const clock = new VirtualClock(NOW_MS);
  const rings: number[] = [];
  const alarm = new Alarm(clock, () => rings.push(clock.nowMs() - NOW_MS));
  const yearMs = 365 * 86_400_000;
  alarm.setAt(NOW_MS + yearMs);
  clock.advance(2 * yearMs);
  expect(rings).toEqual([yearMs]);
});

test('an alarm for a pause until an external event rings though time is stopped', async () => {
  const clock = new VirtualClock(NOW_MS);
  await new Promise<void>((resolve) => new Alarm(clock, resolve, 'outside').setIn(1));
  expect(clock.nowMs()).toBe(NOW_MS);
});
