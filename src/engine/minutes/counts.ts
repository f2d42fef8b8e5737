/**
 * Maps events to counts. An event is counted only here, so the counts of each minute and the metrics of the worker use
 * the same names.
 */
import type { Change, Millis, NewMessage } from '../model.ts';

export type Count =
  /** New messages: publishes, and messages of schedules, callbacks and steps of runs. */
  | 'accepted'
  /** Results of steps of runs. */
  | 'steps'
  | 'delivered'
  /** All attempts that are not `delivered`. */
  | 'failedAttempts'
  /** Failed attempts that will be retried. */
  | 'retries'
  /** Messages that failed, both dead messages and messages that finished without a DLQ entry. */
  | 'dead'
  /** Dead messages and failed runs that entered the DLQ. */
  | 'deadLetters'
  | 'runsStarted'
  | 'runsSucceeded'
  | 'runsFailed'
  | 'runsCanceled';

export function countsOfNew({ run, entry }: NewMessage): Count[] {
  const counts: Count[] = ['accepted'];
  if (entry?.kind === 'step' || entry?.kind === 'fromCallback') counts.push('steps');
  if (run && !run.isBySdk) counts.push('runsStarted'); // otherwise the run was counted when its trigger started it
  return counts;
}

/** The counts of a change that was saved after an attempt. */
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

/** Upper bounds (inclusive) of the buckets of a histogram; one more bucket counts all larger values. */
export const BOUNDS_MS = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000, 60_000] as const;

const BUCKETS = BOUNDS_MS.length + 1;

/** The counts that are saved, in the order in which they are shown. */
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

/** The counts of one minute. Each event is counted when it is saved, in the minute of its log entry. */
export interface Minute extends Record<(typeof COUNTS_OF_MINUTES)[number], number> {
  /** The start of the minute. */
  atMs: Millis;
  /** The durations of attempts: one number for each bucket. */
  latency: number[];
  /** The times between the due time of a message and its first attempt: one number for each bucket. */
  lag: number[];
}

/** The minute that contains `timeMs`, with zero counts. */
export function emptyMinute(timeMs: Millis): Minute {
  const counts = Object.fromEntries(COUNTS_OF_MINUTES.map((name) => [name, 0]));
  return {
    ...(counts as Record<(typeof COUNTS_OF_MINUTES)[number], number>),
    atMs: minuteOf(timeMs),
    latency: new Array(BUCKETS).fill(0),
    lag: new Array(BUCKETS).fill(0),
  };
}

/** The start of the minute that contains `timeMs`. */
export function minuteOf(timeMs: Millis): Millis {
  return timeMs - (timeMs % MINUTE_MS);
}

/** Counts one value of `ms`. */
export function addToHistogram(histogram: number[], ms: Millis): void {
  let bucket = 0;
  while (ms > (BOUNDS_MS[bucket] ?? Infinity)) bucket += 1;
  histogram[bucket] = (histogram[bucket] ?? 0) + 1;
}
