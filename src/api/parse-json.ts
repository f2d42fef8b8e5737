/** Parses the JSON of a request in one piece. Large JSON is parsed in a thread of its own (json-thread.ts). */
import { ApiError } from '../protocol/errors.ts';

const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** Throws `ApiError` 400 when `bytes` are not JSON, or hold more than `valuesMax` values (members and elements). */
export function parseJson(bytes: Uint8Array, valuesMax: number): unknown {
  if (holdsMoreThan(valuesMax, bytes)) {
    throw new ApiError('invalid_body', `invalid request body: at most ${valuesMax} JSON values are accepted`);
  }
  try {
    return JSON.parse(UTF8.decode(bytes));
  } catch {
    // The parser's own text quotes the input, which may be a secret.
    throw new ApiError('invalid_body', 'invalid request body: not valid JSON in UTF-8');
  }
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPENING_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const OPENING_BRACE = 0x7b;

/**
 * Counts the characters that each further value needs: a comma before it, or a bracket around it. For text that is not
 * JSON, the count may be wrong.
 */
function holdsMoreThan(valuesMax: number, json: Uint8Array): boolean {
  if (json.length <= valuesMax) return false;
  let values = 1;
  let isInText = false;
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at];
    if (isInText) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) isInText = false;
    } else if (byte === QUOTE) {
      isInText = true;
    } else if (byte === COMMA || byte === OPENING_BRACE || byte === OPENING_BRACKET) {
      values += 1;
      if (values > valuesMax) return true;
    }
  }
  return false;
}
