/** The results of statements that are sent together. */

/** The result of `second`, once both are done. Rejects with the first failure, and leaves no rejection unhandled. */
export async function withOthers<T>(first: Promise<unknown>, second: Promise<T>): Promise<T> {
  const [before, after] = await Promise.allSettled([first, second]);
  if (before.status === 'rejected') throw before.reason;
  if (after.status === 'rejected') throw after.reason;
  return after.value;
}

/** The answer to the last of several statements. Rejects as `withOthers` does. */
export async function lastOf<T>(answers: readonly Promise<T>[]): Promise<T> {
  const [first, ...others] = answers;
  if (!first) throw new Error('nothing was sent');
  return others.reduce<Promise<T>>(withOthers, first);
}
