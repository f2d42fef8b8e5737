/** Builds the result that an invoked run delivers to the run that invoked it (contract W 14.8). */
import { Buffer } from 'node:buffer';
import type { EndState } from './model.ts';

/**
 * The step of the invoking run as it was registered, with the result in `out` as JSON text in a JSON string. `response`
 * is the return value of the invoked run; absent if the invoked run failed or was cancelled.
 */
export function invokeResult(step: Uint8Array, state: EndState, response: Uint8Array | undefined): Uint8Array {
  const registered = JSON.parse(Buffer.from(step).toString('utf8')) as Record<string, unknown>;
  const body = response && response.length > 0 ? Buffer.from(response).toString('utf8') : undefined;
  const out = JSON.stringify({ body, isCanceled: state === 'RUN_CANCELED', isFailed: state === 'RUN_FAILED' });
  return Buffer.from(JSON.stringify({ ...registered, out }));
}
