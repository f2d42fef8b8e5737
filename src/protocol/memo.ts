/** The maximum number of cached results. With `TEXT_LENGTH_MAX` it bounds the memory. */
const ENTRIES_MAX = 1024;
/** Results of longer texts are not cached. */
const TEXT_LENGTH_MAX = 256;

/**
 * Caches the results of a pure function of one text. Meant for the few texts that occur in nearly every request,
 * such as header names and expressions. A client that fills the cache on purpose only disables it.
 */
export function memo<T>(compute: (text: string) => T): (text: string) => T {
  const results = new Map<string, T>();
  return (text) => {
    const cached = results.get(text);
    if (cached !== undefined) return cached;
    const result = compute(text);
    if (text.length <= TEXT_LENGTH_MAX) {
      // Without tracking which entries are used, all are dropped; a few requests bring the common texts back.
      if (results.size >= ENTRIES_MAX) results.clear();
      results.set(text, result);
    }
    return result;
  };
}
