/** Statistics for the reports. */

/** The quantile `q` (0 to 1) of `values`; NaN without values. */
export function quantile(values: ArrayLike<number>, q: number): number {
  const sorted = Float64Array.from(values).sort();
  if (sorted.length === 0) return Number.NaN;
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1))] ?? Number.NaN;
}

/** The median: the middle value, or the mean of the two in the middle; NaN without values. */
export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** Milliseconds from each publish to its first arrival; messages that never arrived are omitted. */
export function arrivalDelaysMs(sentNs: BigUint64Array, arrivalsNs: BigUint64Array): number[] {
  const delays: number[] = [];
  for (let i = 0; i < sentNs.length; i += 1) {
    const arrived = arrivalsNs[i] ?? 0n;
    if (arrived !== 0n) delays.push(Number(arrived - (sentNs[i] ?? 0n)) / 1e6);
  }
  return delays;
}
