/** The candidates for each context of a command line, for completion scripts. */

export interface Candidate {
  text: string;
  meaning: string;
  /** For an option: whether it takes a value. */
  hasValue?: boolean;
}

/** The candidates after certain words of the command line. */
export interface CompletionContext {
  /**
   * Patterns for the one or two words after the program's name: '', `dlq`, `dlq list`. All three shells understand these
   * patterns, such as `publish *`. If several contexts match a command line, the first of these contexts is used.
   */
  patterns: readonly string[];
  words: readonly Candidate[];
}

/** Separates words from options, which shells offer only after a dash, and lists the options that take a value. */
export function kindsOf(all: readonly Candidate[]): { words: Candidate[]; options: Candidate[]; valued: Candidate[] } {
  const options = all.filter(({ text }) => text.startsWith('-'));
  return {
    words: all.filter(({ text }) => !text.startsWith('-')),
    options,
    valued: options.filter(({ hasValue }) => hasValue),
  };
}

/** The first sentence, truncated to 80 characters. */
export function summaryOf(meaning: string): string {
  const [sentence = ''] = meaning.split(/(?<=\.)\s/, 1);
  const text = sentence.replace(/\.$/, '');
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}

/** `text` in single quotes, which bash, zsh and fish take literally. */
export function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", `'\\''`)}'`;
}
