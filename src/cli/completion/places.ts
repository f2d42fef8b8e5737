/** What can stand where in a command line. */

export interface Word {
  text: string;
  meaning: string;
  /** Of an option: whether a value follows. */
  hasValue?: boolean;
}

/** The words that may come at places of one kind. */
export interface Place {
  /**
   * A place is the one or two words before it, after the program's name: '', `dlq`, `dlq list`. As patterns of a shell, which all
   * three shells understand: `publish *`. The first that fits counts.
   */
  patterns: readonly string[];
  words: readonly Word[];
}

/** Words as shells offer them: options, some of which a value follows, only to whoever has begun to type one. */
export function kindsOf(all: readonly Word[]): { words: Word[]; options: Word[]; valued: Word[] } {
  const options = all.filter(({ text }) => text.startsWith('-'));
  return {
    words: all.filter(({ text }) => !text.startsWith('-')),
    options,
    valued: options.filter(({ hasValue }) => hasValue),
  };
}

/** The first sentence, short enough for a line beside a word. */
export function shortly(meaning: string): string {
  const [sentence = ''] = meaning.split(/(?<=\.)\s/, 1);
  const text = sentence.replace(/\.$/, '');
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}

/** A text that a shell takes as it is: bash, zsh and fish do so between single quotes. */
export function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", `'\\''`)}'`;
}
