const BACK_OFF_MAX_S = 86_400;

/**
 * The default wait before the `retry`-th retry (1, 2, …), in milliseconds: e^(2.5 n) seconds, rounded down to whole
 * seconds, at most a day (contract M 8.2). 12 s, 148 s, 1808 s, 22026 s, then 86400 s.
 */
export function defaultBackOffMs(retry: number): number {
  return Math.min(BACK_OFF_MAX_S, Math.floor(Math.exp(2.5 * retry))) * 1000;
}
