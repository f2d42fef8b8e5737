/** What is counted of a project's messages and runs in one minute? */

import type { Millis } from '../model.ts';
import type { Count } from './counts.ts';

export const MINUTE_MS = 60_000;

/** Upper bounds of the buckets of a histogram, each included; one more bucket takes what is longer. */
export const BOUNDS_MS = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000, 60_000] as const;

const BUCKETS = BOUNDS_MS.length + 1;

/** Those of the counts that are saved, in the order in which they are shown. */
export const COUNTS_OF_MINUTES = [
  'accepted',
  'delivered',
  'failedAttempts',
  'dead',
  'runsStarted',
  'runsSucceeded',
  'runsFailed',
  'runsCanceled',
] as const satisfies Count[];

/** Counted when it was saved, in the minute of its log entry. */
export interface Minute extends Record<(typeof COUNTS_OF_MINUTES)[number], number> {
  /** Its beginning. */
  atMs: Millis;
  /** How many attempts took how long: one number for each bucket. */
  latency: number[];
  /** The same of the time from when a message was due to its first attempt. */
  lag: number[];
}

/** The minute that `timeMs` is in, with nothing counted. */
export function emptyMinute(timeMs: Millis): Minute {
  const counts = Object.fromEntries(COUNTS_OF_MINUTES.map((name) => [name, 0]));
  return {
    ...(counts as Record<(typeof COUNTS_OF_MINUTES)[number], number>),
    atMs: minuteOf(timeMs),
    latency: new Array(BUCKETS).fill(0),
    lag: new Array(BUCKETS).fill(0),
  };
}

/** The beginning of the minute that `timeMs` is in. */
export function minuteOf(timeMs: Millis): Millis {
  return timeMs - (timeMs % MINUTE_MS);
}

/** Counts one that took `ms`. */
export function addTo(histogram: number[], ms: Millis): void {
  let bucket = 0;
  while (ms > (BOUNDS_MS[bucket] ?? Infinity)) bucket += 1;
  histogram[bucket] = (histogram[bucket] ?? 0) + 1;
}
