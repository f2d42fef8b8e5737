/**
 * Encodes values as parameters for PostgreSQL. A text in PostgreSQL cannot contain the character NUL, which SQLite and
 * JavaScript allow, so NUL is written as two other characters.
 */
import type { SqlParam, SqlValue } from '../../../driver.ts';

/** Encodes a parameter for the client library. An array becomes a literal; the server infers the literal's type. */
export function toParameter(param: SqlParam): string | number | Buffer | null {
  if (Array.isArray(param)) return arrayLiteral(param);
  return toValue(param as SqlValue);
}

function toValue(value: SqlValue): string | number | Buffer | null {
  if (typeof value === 'string') return escapeText(value);
  if (value instanceof Uint8Array) return asBuffer(value);
  return value;
}

function arrayLiteral(values: readonly SqlValue[]): string {
  const elements = values.map((value) => {
    if (typeof value === 'number') return String(value);
    if (typeof value === 'string') return `"${escapeText(value).replaceAll(/["\\]/g, '\\$&')}"`;
    throw new TypeError('a list contains only numbers or texts');
  });
  return `{${elements.join(',')}}`;
}

/** Shares the memory; copies nothing. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

// A private-use character that publishes hardly ever contain. After this character in a text, the letter `e` is added.
const ESCAPE = '\uF8FE';
const NUL = '\0';

/** Replaces NUL. Almost all texts contain neither NUL nor the escape character, and are returned unchanged. */
export function escapeText(text: string): string {
  if (!text.includes(NUL) && !text.includes(ESCAPE)) return text;
  return text.replaceAll(ESCAPE, `${ESCAPE}e`).replaceAll(NUL, `${ESCAPE}0`);
}

/** Undoes `escapeText`. */
export function unescapeText(text: string): string {
  if (!text.includes(ESCAPE)) return text;
  return text.replaceAll(`${ESCAPE}0`, NUL).replaceAll(`${ESCAPE}e`, ESCAPE);
}
