/** Reads a request's JSON body, whatever its content type says (contract M 1.2.2). */
import { ApiError } from '../../protocol/errors.ts';
import type { BodyLimit, RequestBody } from './request-body.ts';

export interface JsonLimit extends BodyLimit {
  /**
   * Maximum number of values (members and elements). A parsed value takes about 50 bytes, however short its text is: 100 MiB
   * of empty objects would become gigabytes, and block the process for many seconds.
   */
  valuesMax: number;
}

/** Larger bodies are parsed in another thread, because a parser cannot yield to other work. */
export const JSON_INLINE_BYTES_MAX = 256 * 1024;

/** Memory per byte of JSON: the text and the parsed values are in memory at the same time. */
export const JSON_MEMORY_PER_BYTE = 2;

/**
 * Reads and parses a small body: `limit` is at most `JSON_INLINE_BYTES_MAX`. Returns `undefined` if there is no body. Throws
 * `ApiError` 400 if the body is not JSON or has too many values.
 */
export async function readJson(body: RequestBody, limit: JsonLimit): Promise<unknown> {
  const bytes = await body.read({ ...limit, memoryPerByte: JSON_MEMORY_PER_BYTE });
  return bytes.length === 0 ? undefined : parseJson(bytes, limit.valuesMax);
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Maximum nesting of arrays and objects. The parser has no limit, but recursive functions such as `JSON.stringify`, and copies
 * between threads, overflow the stack at a few thousand levels.
 */
export const JSON_LEVELS_MAX = 500;

/**
 * Throws `ApiError` 400 if `bytes` are not JSON, have more than `valuesMax` values (members and elements), or are nested more
 * than `JSON_LEVELS_MAX` levels deep.
 */
export function parseJson(bytes: Uint8Array, valuesMax: number): unknown {
  checkShape(bytes, valuesMax);
  try {
    return JSON.parse(UTF8.decode(bytes));
  } catch {
    // The parser's own message quotes the input, which may be a secret.
    throw new ApiError('invalid_body', 'invalid request body: not valid JSON in UTF-8');
  }
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPENING_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

/**
 * Counts values and levels by the character that each further value needs: a comma before it, or a bracket around it. If the
 * text is not JSON, the counts may be wrong.
 */
function checkShape(json: Uint8Array, valuesMax: number): void {
  if (json.length <= Math.min(valuesMax, JSON_LEVELS_MAX)) return;
  let values = 1;
  let levels = 0;
  let isInText = false;
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at];
    if (isInText) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) isInText = false;
    } else if (byte === QUOTE) {
      isInText = true;
    } else if (byte === CLOSING_BRACE || byte === CLOSING_BRACKET) {
      levels -= 1;
    } else if (byte === COMMA || byte === OPENING_BRACE || byte === OPENING_BRACKET) {
      values += 1;
      if (values > valuesMax) {
        throw new ApiError('invalid_body', `invalid request body: at most ${valuesMax} JSON values are accepted`);
      }
      if (byte === COMMA) continue;
      levels += 1;
      if (levels > JSON_LEVELS_MAX) {
        throw new ApiError(
          'invalid_body',
          `invalid request body: at most ${JSON_LEVELS_MAX} levels of JSON are accepted`,
        );
      }
    }
  }
}
