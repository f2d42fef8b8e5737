/** Awaits the results of statements that are sent together (pipelined), so that no rejection stays unhandled. */

/** Waits for both, and returns the result of `second`. Rejects with the error of `first` if both fail. */
export async function awaitBoth<T>(first: Promise<unknown>, second: Promise<T>): Promise<T> {
  const [one, other] = await Promise.allSettled([first, second]);
  if (one.status === 'rejected') throw one.reason;
  if (other.status === 'rejected') throw other.reason;
  return other.value;
}

/** Waits for all results, and returns the last result. Rejects with the error of the earliest failed statement. */
export async function awaitLast<T>(results: readonly Promise<T>[]): Promise<T> {
  const [first, ...others] = results;
  if (!first) throw new Error('no statement was sent');
  return others.reduce<Promise<T>>(awaitBoth, first);
}
