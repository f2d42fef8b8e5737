/** What does the end of an invoked run say to its parent (contract W 14.8)? */
import { Buffer } from 'node:buffer';
import type { EndState } from './model.ts';

/**
 * The parent's step as it was registered, with the result in `out`: a JSON text in a JSON string. `response` is what the
 * child returned; of a failed or cancelled one there is none.
 */
export function invokeResult(step: Uint8Array, state: EndState, response: Uint8Array | undefined): Uint8Array {
  const registered = JSON.parse(Buffer.from(step).toString('utf8')) as Record<string, unknown>;
  const body = response && response.length > 0 ? Buffer.from(response).toString('utf8') : undefined;
  const out = JSON.stringify({ body, isCanceled: state === 'RUN_CANCELED', isFailed: state === 'RUN_FAILED' });
  return Buffer.from(JSON.stringify({ ...registered, out }));
}
