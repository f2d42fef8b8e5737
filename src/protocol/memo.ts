/** How many answers one memo keeps, and how long a text may be to be worth keeping: together they bound its memory. */
const ENTRIES_MAX = 1024;
const TEXT_LENGTH_MAX = 256;

/**
 * Remembers the answers of a pure function of one text. Meant for the few texts that come with nearly every request
 * (header names, expressions); what callers send on purpose to fill it only costs them the memo's help.
 */
export function memo<T>(compute: (text: string) => T): (text: string) => T {
  const answers = new Map<string, T>();
  return (text) => {
    const known = answers.get(text);
    if (known !== undefined) return known;
    const answer = compute(text);
    if (text.length <= TEXT_LENGTH_MAX) {
      // Emptied as a whole: the common texts are back within a few requests, and no order has to be kept for them.
      if (answers.size >= ENTRIES_MAX) answers.clear();
      answers.set(text, answer);
    }
    return answer;
  };
}
