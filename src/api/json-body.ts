/** A request's JSON body, whatever its content type says (messaging.md 1.2, item 2). */
import { ApiError } from '../protocol/errors.ts';
import type { BodyLimit, RequestBody } from './request-body.ts';

const UTF8 = new TextDecoder('utf-8', { fatal: true });

export interface JsonLimit extends BodyLimit {
  /**
   * Values (members and elements) that the text may hold. A parsed value takes some 50 bytes whatever little text it
   * came from: 100 MiB of empty objects would become gigabytes, and stop the process for many seconds.
   */
  valuesMax: number;
}

/** The parsed body, `undefined` when there is none. Throws `ApiError` 400 when it is not JSON or holds too many values. */
export async function readJson(body: RequestBody, limit: JsonLimit): Promise<unknown> {
  const bytes = await body.read({ ...limit, memoryPerByte: 2 });
  return bytes.length === 0 ? undefined : parseJson(bytes, limit.valuesMax);
}

/** The same for bytes that are there already. */
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

/** Counts what every further value needs: a comma before it, or a bracket around it. What is no JSON may count as anything. */
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
