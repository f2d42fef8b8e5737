/** Awaits the results of statements that are sent together (pipelined), so that no rejection stays unhandled. */

/** Waits for both, and returns the result of `second`. Rejects with the error of `first` if both fail. */
export async function withOthers<T>(first: Promise<unknown>, second: Promise<T>): Promise<T> {
  const [before, after] = await Promise.allSettled([first, second]);
  if (before.status === 'rejected') throw before.reason;
  if (after.status === 'rejected') throw after.reason;
  return after.value;
}

/** Waits for all results, and returns the last one. Rejects with the error of the earliest statement that failed. */
export async function lastOf<T>(answers: readonly Promise<T>[]): Promise<T> {
  const [first, ...others] = answers;
  if (!first) throw new Error('no statement was sent');
  return others.reduce<Promise<T>>(withOthers, first);
}
