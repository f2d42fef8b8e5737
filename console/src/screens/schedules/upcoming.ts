/** The next times of a cron expression, by the rules of the server itself. */
import { parseCron } from '../../../../src/protocol/times/cron.ts';
import { nextCronTime } from '../../../../src/protocol/times/cron-times.ts';

/** Up to `count` times after `afterMs`; an interval goes on from `anchorMs`, one of its times. Throws for a wrong expression. */
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

/** The time zone that the expression names; UTC without one. */
export function timeZoneOf(cron: string): string {
  return /^\s*(?:CRON_)?TZ=(\S+)/.exec(cron)?.[1] ?? 'UTC';
}
