/** Converts the counts per minute into the data of a chart. A minute without a row had no events. Pure. */
import type { ResponseOf } from '../../api/client.ts';

type Minutes = ResponseOf<'listMinutes'>;
type Minute = Minutes['minutes'][number];

const MINUTE_MS = 60_000;

/** The first list has the times in seconds, as the chart expects. */
export type ChartData = [times: number[], ...lines: (number | null)[][]];

/** From the minute of `fromMs` to the last complete minute before `toMs`. An incomplete minute would look like a drop. */
export function chartDataOf(
  { minutes }: Minutes,
  fromMs: number,
  toMs: number,
  valuesOf: (minute: Minute | undefined) => (number | null)[],
): ChartData {
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
 * A quantile of a histogram: the upper bound of the bucket that contains the quantile, or the last bound if the quantile
 * is higher. `null` if the histogram is empty.
 */
export function quantileOf(counts: readonly number[], bounds: readonly number[], quantile: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let left = quantile * total;
  for (const [index, count] of counts.entries()) {
    left -= count;
    if (left <= 0 && count > 0) return bounds[index] ?? bounds.at(-1) ?? null;
  }
  return bounds.at(-1) ?? null;
}

/** Adds up the histograms of all minutes. */
export function sumHistograms(minutes: readonly Minute[], member: 'latency' | 'lag'): number[] {
  const sums: number[] = [];
  for (const minute of minutes)
    for (const [index, count] of minute[member].entries()) sums[index] = (sums[index] ?? 0) + count;
  return sums;
}
