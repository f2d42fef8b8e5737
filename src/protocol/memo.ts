/** The number of cached results and the maximum length of a cached text. Together they bound the memory. */
const ENTRIES_MAX = 1024;
const TEXT_LENGTH_MAX = 256;

/**
 * Caches the results of a pure function of one text. Meant for the few texts that occur in nearly every request,
 * such as header names and expressions. A client that fills the cache on purpose only disables it.
 */
export function memo<T>(compute: (text: string) => T): (text: string) => T {
  const answers = new Map<string, T>();
  return (text) => {
    const known = answers.get(text);
    if (known !== undefined) return known;
    const answer = compute(text);
    if (text.length <= TEXT_LENGTH_MAX) {
      // All entries are dropped at once: the common texts are back within a few requests, and no order must be kept.
      if (answers.size >= ENTRIES_MAX) answers.clear();
      answers.set(text, answer);
    }
    return answer;
  };
}
