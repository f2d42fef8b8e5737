/** A position in a list that is ordered by time: after item `n` of the millisecond `ms`. */
export interface Cursor {
  ms: number;
  /** `undefined` in a plain integer cursor, which means the whole millisecond (contract M 3.7). */
  n: number | undefined;
}

const CURSOR = /^(\d{1,16})(?:-(\d{1,16}))?$/;

/** The text of a cursor: `<unix ms>-<n>`. */
export function encodeCursor(ms: number, n: number): string {
  return `${ms}-${n}`;
}

/** The DLQ id of the message `key` that failed at `failedAtMs` (contract M 3.3); `decodeCursor` reads it. */
export function dlqIdOf(failedAtMs: number, key: number): string {
  return encodeCursor(failedAtMs, key);
}

/** Reads a result of `encodeCursor`, or a plain Unix time in ms. Returns `undefined` for any other text. */
export function decodeCursor(text: string): Cursor | undefined {
  const parts = CURSOR.exec(text);
  if (parts === null) return undefined;
  const ms = Number(parts[1]);
  const n = parts[2] === undefined ? undefined : Number(parts[2]);
  if (!Number.isSafeInteger(ms) || (n !== undefined && !Number.isSafeInteger(n))) return undefined;
  return { ms, n };
}
