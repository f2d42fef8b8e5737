/**
 * Optimistic concurrency control: repeats a decision if the data that it relies on has changed before the decision was
 * saved.
 */
import { ApiError } from '../../protocol/errors.ts';

/** The result of a round that saved nothing, because the data has changed since it was read. */
export const STALE = Symbol('stale');

/** The limit of rounds. In each stale round another command has made progress. */
export const ROUNDS_MAX = 20;

/**
 * Repeats `round`, which reads, decides and saves, until a round is not stale. Throws `ApiError` 503 after 20 stale
 * rounds: the client can try again.
 */
export async function retryWhileStale<T>(
  /** The name of the data that changes, for the error message. */
  changing: string,
  round: () => Promise<T | typeof STALE>,
): Promise<T> {
  for (let rounds = 0; rounds < ROUNDS_MAX; rounds += 1) {
    const result = await round();
    if (result !== STALE) return result;
  }
  throw changesTooOften(changing);
}

export function changesTooOften(what: string): ApiError {
  return new ApiError('unavailable', `${what} changes too often, try again shortly`);
}
