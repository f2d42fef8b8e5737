/** A request's JSON body, whatever its content type says (contract M 1.2.2). */
import { parseJson } from './parse-json.ts';
import type { BodyLimit, RequestBody } from './request-body.ts';

export interface JsonLimit extends BodyLimit {
  /**
   * Values (members and elements) that the text may hold. A parsed value takes some 50 bytes whatever little text it
   * came from: 100 MiB of empty objects would become gigabytes, and stop the process for many seconds.
   */
  valuesMax: number;
}

/** More than so many bytes are parsed in a thread of their own: a parser cannot give way to others before its end. */
export const JSON_HERE_BYTES_MAX = 256 * 1024;

/** Memory that a byte of JSON stands for: it is there as bytes, and as what was made of them. */
export const JSON_MEMORY_PER_BYTE = 2;

/**
 * The parsed body, `undefined` when there is none. For small bodies: `limit` is at most `JSON_HERE_BYTES_MAX`. Throws
 * `ApiError` 400 when it is not JSON or holds too many values.
 */
export async function readJson(body: RequestBody, limit: JsonLimit): Promise<unknown> {
  const bytes = await body.read({ ...limit, memoryPerByte: JSON_MEMORY_PER_BYTE });
  return bytes.length === 0 ? undefined : parseJson(bytes, limit.valuesMax);
}
