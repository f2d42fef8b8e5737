/** The values of an address: what a screen shows is in its address, so that a link shows the same. */
export type Search = Record<string, string | undefined>;

/** All values are texts; each screen parses its own. */
export function readSearch(given: Record<string, unknown>): Search {
  return Object.fromEntries(
    Object.entries(given)
      .filter(([, value]) => value !== '' && value !== null && value !== undefined && typeof value !== 'object')
      .map(([name, value]) => [name, String(value)]),
  );
}
