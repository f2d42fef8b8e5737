/** Reads a request's JSON body, whatever its content type says (contract M 1.2.2). */
import { parseJson } from './parse-json.ts';
import type { BodyLimit, RequestBody } from './request-body.ts';

export interface JsonLimit extends BodyLimit {
  /**
   * Values (members and elements) that the text may hold. A parsed value takes some 50 bytes, however short its text
   * is: 100 MiB of empty objects would become gigabytes, and block the process for many seconds.
   */
  valuesMax: number;
}

/** Larger bodies are parsed in a thread of their own, because a parser cannot pause to let other work run. */
export const JSON_HERE_BYTES_MAX = 256 * 1024;

/** Memory per byte of JSON: the text and the parsed values are in memory together. */
export const JSON_MEMORY_PER_BYTE = 2;

/**
 * The parsed body, `undefined` when there is none. For small bodies: `limit` is at most `JSON_HERE_BYTES_MAX`. Throws
 * `ApiError` 400 when it is not JSON or holds too many values.
 */
export async function readJson(body: RequestBody, limit: JsonLimit): Promise<unknown> {
  const bytes = await body.read({ ...limit, memoryPerByte: JSON_MEMORY_PER_BYTE });
  return bytes.length === 0 ? undefined : parseJson(bytes, limit.valuesMax);
}
