/** The query parameters of the console. They hold the state of a screen, so that a link shows the same. */
export type Search = Record<string, string | undefined>;

/** All values are strings; each screen parses its own. */
export function readSearch(given: Record<string, unknown>): Search {
  return Object.fromEntries(
    Object.entries(given)
      .filter(([, value]) => value !== '' && value !== null && value !== undefined && typeof value !== 'object')
      .map(([name, value]) => [name, String(value)]),
  );
}
