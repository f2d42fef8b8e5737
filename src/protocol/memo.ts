/** The maximum number of cached results, which together with `TEXT_LENGTH_MAX` bounds the memory. */
const ENTRIES_MAX = 1024;
/** Results of longer texts are not cached. */
const TEXT_LENGTH_MAX = 256;

/**
 * Caches the results of a pure function of one text. The cache is meant for the few texts that occur in nearly every
 * request, such as header names and expressions. A client that fills the cache on purpose only disables it.
 */
export function memo<T>(compute: (text: string) => T): (text: string) => T {
  const results = new Map<string, T>();
  return (text) => {
    const cached = results.get(text);
    if (cached !== undefined) return cached;
    const result = compute(text);
    if (text.length <= TEXT_LENGTH_MAX) {
      // The use of entries is not tracked, so all entries are dropped; a few requests bring the common texts back.
      if (results.size >= ENTRIES_MAX) results.clear();
      results.set(text, result);
    }
    return result;
  };
}
