/** Minutes as lines of a chart. A minute without a row is one in which nothing happened. Pure. */
import type { AnswerOf } from '../../api/client.ts';

type Minutes = AnswerOf<'listMinutes'>;
type Minute = Minutes['minutes'][number];

const MINUTE_MS = 60_000;

/** The first list is the time in seconds, as the chart reads it. */
export type Lines = [times: number[], ...lines: (number | null)[][]];

/** From the minute of `fromMs` up to the last whole minute before `toMs`: the one under way would always seem to fall. */
export function linesOf(
  { minutes }: Minutes,
  fromMs: number,
  toMs: number,
  valuesOf: (minute: Minute | undefined) => (number | null)[],
): Lines {
  const known = new Map(minutes.map((minute) => [minute.time, minute]));
  const times: number[] = [];
  const rows: (number | null)[][] = [];
  for (let atMs = Math.floor(fromMs / MINUTE_MS) * MINUTE_MS; atMs + MINUTE_MS <= toMs; atMs += MINUTE_MS) {
    times.push(atMs / 1_000);
    rows.push(valuesOf(known.get(atMs)));
  }
  const width = valuesOf(undefined).length;
  return [times, ...Array.from({ length: width }, (_, nth) => rows.map((row) => row[nth] ?? null))];
}

/**
 * The value that `share` of what was counted do not exceed: the upper bound of its bucket. `null` when nothing was counted. What is above
 * all bounds is told as the last of them.
 */
export function quantileOf(counts: readonly number[], bounds: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let left = share * total;
  for (const [index, count] of counts.entries()) {
    left -= count;
    if (left <= 0 && count > 0) return bounds[index] ?? bounds.at(-1) ?? null;
  }
  return bounds.at(-1) ?? null;
}

/** All buckets of `member` together. */
export function together(minutes: readonly Minute[], member: 'latency' | 'lag'): number[] {
  const sums: number[] = [];
  for (const minute of minutes)
    for (const [index, count] of minute[member].entries()) sums[index] = (sums[index] ?? 0) + count;
  return sums;
}
