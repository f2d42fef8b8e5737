/** Makes untrusted text safe for a terminal. Names, results and errors of a workflow can be any text. */

const EXCERPT_LENGTH_MAX = 60;

/** The text without characters that could control the terminal. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]+/gu, ' ');
}

/** `value` as JSON, safe for a terminal: `JSON.stringify` alone escapes only control characters below U+0020. */
export function plainJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(/[\x7f-\x9f\p{Cf}]/gu, (character) =>
    Array.from({ length: character.length }, (_, at) => escapeOf(character.charCodeAt(at))).join(''),
  );
}

function escapeOf(code: number): string {
  return `\\u${code.toString(16).padStart(4, '0')}`;
}

/** The first characters of a text, or of a value as JSON, in one line. */
export function excerpt(value: unknown): string {
  const text = typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
  const line = plain(text).trim();
  return line.length > EXCERPT_LENGTH_MAX ? `${line.slice(0, EXCERPT_LENGTH_MAX)}…` : line;
}

/** The first lines that are not empty, truncated to the width of a terminal. */
export function firstLines(text: string, countMax: number): string[] {
  const lines = text.split('\n').map((line) => plain(line).trimEnd());
  return lines
    .filter((line) => line !== '')
    .slice(0, countMax)
    .map((line) => (line.length > 110 ? `${line.slice(0, 110)}…` : line));
}
