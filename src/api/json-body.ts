/** A request's JSON body, whatever its content type says (messaging.md 1.2, item 2). */
import { ApiError } from '../protocol/errors.ts';
import type { BodyLimit, RequestBody } from './request-body.ts';

const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** The parsed body, `undefined` when there is none. Throws `ApiError` 400 when it is not JSON. */
export async function readJson(body: RequestBody, limit: BodyLimit): Promise<unknown> {
  const bytes = await body.read({ ...limit, memoryPerByte: 2 });
  if (bytes.length === 0) return undefined;
  try {
    return JSON.parse(UTF8.decode(bytes));
  } catch {
    // The parser's own text quotes the input, which may be a secret.
    throw new ApiError('invalid_body', 'invalid request body: not valid JSON in UTF-8');
  }
}
