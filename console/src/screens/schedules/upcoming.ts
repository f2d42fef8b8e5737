/** Computes the next times of a cron expression, with the code of the server. */
import { parseCron } from '../../../../src/protocol/times/cron.ts';
import { nextCronTime } from '../../../../src/protocol/times/cron-times.ts';

/**
 * Returns up to `count` times after `afterMs`. Intervals are counted from the time `anchorMs`. Throws for an invalid
 * expression.
 */
export function upcomingTimes(cron: string, afterMs: number, count: number, anchorMs?: number): number[] {
  const parsed = parseCron(cron);
  const times: number[] = [];
  let atMs: number | undefined = afterMs;
  while (times.length < count) {
    atMs = nextCronTime(parsed, atMs, anchorMs);
    if (atMs === undefined) break;
    times.push(atMs);
  }
  return times;
}

/** The time zone of the expression; UTC by default. */
export function timeZoneOf(cron: string): string {
  return /^\s*(?:CRON_)?TZ=(\S+)/.exec(cron)?.[1] ?? 'UTC';
}
