/**
 * The query parameters of the console. The parameters hold the state of a screen, so that a link shows the same state.
 */
export type Search = Record<string, string | undefined>;

/** All values are strings. Each screen parses the values that it uses. */
export function readSearch(given: Record<string, unknown>): Search {
  return Object.fromEntries(
    Object.entries(given)
      .filter(([, value]) => value !== '' && value !== null && value !== undefined && typeof value !== 'object')
      .map(([name, value]) => [name, String(value)]),
  );
}
