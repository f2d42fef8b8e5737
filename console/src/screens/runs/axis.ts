/** The visible time range of the timeline, and the tick marks on its axis. Pure. */
export interface Range {
  fromMs: number;
  toMs: number;
}

/** The smallest range that can be zoomed to. */
const RANGE_MS_MIN = 10;

/** Zooms in if `by` is below 1. `anchor` is the position in the range, from 0 to 1, that stays fixed. */
export function zoomRange({ fromMs, toMs }: Range, whole: Range, by: number, anchor = 0.5): Range {
  const lengthMs = Math.max(RANGE_MS_MIN, (toMs - fromMs) * by);
  const anchorMs = fromMs + (toMs - fromMs) * anchor;
  return clampRange({ fromMs: anchorMs - lengthMs * anchor, toMs: anchorMs + lengthMs * (1 - anchor) }, whole);
}

/** Moves forward by `by` times the length of the range, or backward if `by` is negative. */
export function moveRange({ fromMs, toMs }: Range, whole: Range, by: number): Range {
  const stepMs = (toMs - fromMs) * by;
  return clampRange({ fromMs: fromMs + stepMs, toMs: toMs + stepMs }, whole);
}

/** Moves `range` inside `whole`, and shortens a `range` that is longer than `whole`. */
export function clampRange(range: Range, whole: Range): Range {
  const lengthMs = Math.min(range.toMs - range.fromMs, whole.toMs - whole.fromMs);
  const fromMs = Math.min(Math.max(range.fromMs, whole.fromMs), whole.toMs - lengthMs);
  return { fromMs, toMs: fromMs + lengthMs };
}

/** The position of a time in the range: from 0 to 1, or below 0 or above 1 for times outside the range. */
export function fractionOf(atMs: number, { fromMs, toMs }: Range): number {
  return toMs > fromMs ? (atMs - fromMs) / (toMs - fromMs) : 0;
}

const STEPS_MS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1_000),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60_000),
  ...[1, 2, 3, 6, 12].map((hours) => hours * 3_600_000),
];
const DAY_MS = 86_400_000;

/** Round times after `originMs` in the range, at most `countMax`. */
export function tickMarksOf({ fromMs, toMs }: Range, originMs: number, countMax: number): number[] {
  const leastMs = (toMs - fromMs) / countMax;
  const stepMs = STEPS_MS.find((each) => each >= leastMs) ?? Math.ceil(leastMs / DAY_MS) * DAY_MS;
  const first = Math.ceil((fromMs - originMs) / stepMs);
  const count = Math.floor((toMs - originMs) / stepMs) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, at) => originMs + (first + at) * stepMs);
}
