/**
 * What does an event add to the counts, and which counts are saved by the minute? An event is counted once: the counts of each
 * minute and the metrics of the worker read the same names.
 */
import type { Change, Millis, NewMessage } from '../model.ts';

export type Count =
  /** New messages: published, scheduled, callbacks, steps of runs. */
  | 'accepted'
  /** Results of steps of runs. */
  | 'steps'
  | 'delivered'
  /** Together with `delivered` these are all attempts. */
  | 'failedAttempts'
  /** Failed attempts after which another one is planned. */
  | 'retries'
  /** Messages that failed for good. */
  | 'dead'
  /** Those of them, and runs, that entered the DLQ. */
  | 'deadLetters'
  | 'runsStarted'
  | 'runsSucceeded'
  | 'runsFailed'
  | 'runsCanceled';

export function countsOfNew({ run, entry }: NewMessage): Count[] {
  const counts: Count[] = ['accepted'];
  if (entry?.kind === 'step' || entry?.kind === 'fromCallback') counts.push('steps');
  if (run && !run.isBySdk) counts.push('runsStarted'); // otherwise its trigger has begun it
  return counts;
}

/** Of a change that was saved after an attempt. */
export function countsOf({ next, events, deadLetter, ending }: Change): Count[] {
  const counts: Count[] = [];
  const [first] = events;
  if (first) counts.push(first.state === 'DELIVERED' ? 'delivered' : 'failedAttempts');
  if (next.kind === 'waiting') counts.push('retries');
  if (events.at(-1)?.state === 'FAILED') counts.push('dead');
  if (deadLetter) counts.push('deadLetters');
  if (ending?.state === 'RUN_FAILED') counts.push('runsFailed');
  return counts;
}

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
