/** The visible time range of the timeline, and the marks of its axis. */
import { describe, expect, it } from 'vitest';
import { clampRange, fractionOf, moveRange, tickMarksOf, zoomRange } from '../../console/src/screens/runs/axis.ts';

const whole = { fromMs: 1_000, toMs: 11_000 };

describe('zooming', () => {
  it('keeps the time under the pointer at its position', () => {
    const closer = zoomRange(whole, whole, 0.5, 0.25);
    expect(closer.toMs - closer.fromMs).toBe(5_000);
    expect(fractionOf(3_500, closer)).toBeCloseTo(fractionOf(3_500, whole));
  });

  it('never shows times outside the run', () => {
    expect(zoomRange({ fromMs: 9_000, toMs: 10_000 }, whole, 100)).toEqual(whole);
    expect(moveRange({ fromMs: 1_500, toMs: 2_500 }, whole, -3)).toEqual({ fromMs: 1_000, toMs: 2_000 });
    expect(moveRange({ fromMs: 9_500, toMs: 10_500 }, whole, 3)).toEqual({ fromMs: 10_000, toMs: 11_000 });
  });

  it('stops at a range of 10 ms', () => {
    let range = whole;
    for (let i = 0; i < 100; i += 1) range = zoomRange(range, whole, 0.5);
    expect(range.toMs - range.fromMs).toBeCloseTo(10);
  });

  it('shows the whole run if it is shorter than the range', () => {
    expect(clampRange({ fromMs: 0, toMs: 60_000 }, whole)).toEqual(whole);
  });
});

describe('the axis', () => {
  it.each([
    [40, 10],
    [900, 200],
    [45_000, 10_000],
    [3_600_000, 600_000],
    [400 * 86_400_000, 67 * 86_400_000],
  ])('of a range of %i ms has a mark every %i ms', (lengthMs, intervalMs) => {
    const marks = tickMarksOf({ fromMs: 5, toMs: 5 + lengthMs }, 5, 6);
    expect(marks[0]).toBe(5);
    expect((marks[1] ?? 0) - (marks[0] ?? 0)).toBe(intervalMs);
    expect(marks.length).toBeLessThanOrEqual(7);
  });

  it('counts from the start of the run, even if only a later part is visible', () => {
    expect(tickMarksOf({ fromMs: 2_340, toMs: 4_340 }, 1_000, 4)).toEqual([2_500, 3_000, 3_500, 4_000]);
  });
});
