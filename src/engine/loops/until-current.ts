/** A decision is saved only if the data that it was made from has not changed meanwhile. How often is this tried? */
import { ApiError } from '../../protocol/errors.ts';

/** The answer of a round that saved nothing, because the data has changed since it was read. */
export const STALE = Symbol('stale');

/** In each stale round another command has made progress. */
export const ROUNDS_MAX = 20;

/**
 * Each `round` reads, decides and saves. Repeats it until a round is not stale. Throws `ApiError` 503 after 20 stale
 * rounds: the client can try again.
 */
export async function untilCurrent<T>(
  /** What changes, as the error message names it. */
  what: string,
  round: () => Promise<T | typeof STALE>,
): Promise<T> {
  for (let rounds = 0; rounds < ROUNDS_MAX; rounds += 1) {
    const answer = await round();
    if (answer !== STALE) return answer;
  }
  throw changesTooOften(what);
}

export function changesTooOften(what: string): ApiError {
  return new ApiError('unavailable', `${what} changes too often, try again shortly`);
}
