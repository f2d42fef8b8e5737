import { Buffer, isUtf8 } from 'node:buffer';

const BEYOND_ASCII = /[\x80-\xff]/;

/**
 * Percent-decodes once, as UTF-8; a `+` stays a plus. `undefined` when an escape is malformed or does not make valid
 * UTF-8.
 */
export function percentDecode(text: string): string | undefined {
  if (!text.includes('%')) return textOfWire(text);
  try {
    return decodeURIComponent(textOfWire(text));
  } catch {
    return undefined; // the only error that it throws is URIError
  }
}

/** The same for a value in a query string, where a `+` is a blank. */
export function formDecode(text: string): string | undefined {
  return percentDecode(text.includes('+') ? text.replaceAll('+', ' ') : text);
}

/**
 * The text of a request target or a header value, which hold one character for each byte: UTF-8 where the bytes are
 * valid UTF-8, else Latin-1.
 */
export function textOfWire(latin1: string): string {
  if (!BEYOND_ASCII.test(latin1)) return latin1;
  const bytes = Buffer.from(latin1, 'latin1');
  // A text with letters above Latin-1 was decoded already, and would lose them here.
  return isUtf8(bytes) && bytes.toString('latin1') === latin1 ? bytes.toString('utf8') : latin1;
}
