/** How many results one memo keeps, and the longest text that it keeps one for. Together they bound its memory. */
const ENTRIES_MAX = 1024;
const TEXT_LENGTH_MAX = 256;

/**
 * Remembers the results of a pure function of one text. Meant for the few texts that come with nearly every request,
 * such as header names and expressions. A client that fills the memo on purpose only loses its benefit.
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
