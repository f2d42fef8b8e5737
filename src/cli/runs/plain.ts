/** How is a text of a stranger shown in a terminal? Names, results and errors are whatever a workflow says. */

const EXCERPT_LENGTH_MAX = 60;

/** Without anything that could steer the terminal. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]+/gu, ' ');
}

/** The beginning of a text, or of a value as JSON, in one line. */
export function excerpt(value: unknown): string {
  const text = typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
  const line = plain(text).trim();
  return line.length > EXCERPT_LENGTH_MAX ? `${line.slice(0, EXCERPT_LENGTH_MAX)}…` : line;
}

/** Its first lines, as wide as a terminal. */
export function firstLines(text: string, countMax: number): string[] {
  const lines = text.split('\n').map((line) => plain(line).trimEnd());
  return lines
    .filter((line) => line !== '')
    .slice(0, countMax)
    .map((line) => (line.length > 110 ? `${line.slice(0, 110)}…` : line));
}
