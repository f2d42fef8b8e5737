/** What is decided from something that was read is saved only if that has not changed meanwhile. How often is it tried? */
import { ApiError } from '../protocol/errors.ts';

/** What a round answers that saved nothing: something is not as it was read. */
export const STALE = Symbol('stale');

/** Each round that is stale is one in which somebody else got on. */
const ROUNDS_MAX = 20;

/**
 * Reads, decides and saves in one `round` after the other, until one is not stale. Throws `ApiError` 503 when `roundsMax` are:
 * whoever waits can come back. What nobody would ask for again, such as a settle, goes on for as long as it takes.
 */
export async function untilCurrent<T>(
  /** That which changes, as the refusal names it. */
  what: string,
  round: () => Promise<T | typeof STALE>,
  roundsMax = ROUNDS_MAX,
): Promise<T> {
  for (let rounds = 0; rounds < roundsMax; rounds += 1) {
    const answer = await round();
    if (answer !== STALE) return answer;
  }
  throw new ApiError('unavailable', `${what} changes too often, try again shortly`);
}
