/**
 * What does an event add to the counts? It is counted once: the counts of each minute and the metrics of the worker read
 * the same names.
 */
import type { Change, NewMessage } from '../model.ts';

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
