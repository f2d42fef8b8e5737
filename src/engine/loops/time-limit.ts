/** Limits how long the caller waits for work that has no time limit of its own. */
import type { Millis } from '../model.ts';
import type { Machine } from '../ports.ts';

/** Returns the result of `work`, or undefined if `work` takes longer than `limitMs`. The work itself is not stopped. */
export async function withTimeLimit<T>(
  clock: Pick<Machine, 'startTimer'>,
  limitMs: Millis,
  work: Promise<T>,
): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const timer = clock.startTimer(limitMs, () => resolve(undefined), 'outside');
  try {
    return await Promise.race([work, promise]);
  } finally {
    timer.cancel();
  }
}
