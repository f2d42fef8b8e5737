/** Turns the response to a `context.call` into the result of its step (contract W 14.5). */
import type { Step } from './types.ts';
import { HEADER } from './wire.ts';

/** The response to a `context.call`, in the body of the callback. */
interface CallResult {
  status: number;
  header: Record<string, string[]>;
  /** Base64. */
  body?: string;
  retried?: number;
  maxRetries?: number;
}

/** Returns the result of the step, or undefined if this attempt failed and another result will follow. */
export function stepOfCallResult(headerOf: (name: string) => string, text: string): Step | undefined {
  const { status, header, body, retried = 0, maxRetries = 0 } = JSON.parse(text) as CallResult;
  const isFinal = (status >= 200 && status < 300) || retried === maxRetries;
  if (!isFinal) return undefined;
  const encodedName = headerOf(HEADER.callbackStepNameEncoded);
  return {
    stepId: Number(headerOf(HEADER.callbackStepId)),
    stepName: encodedName === '' ? textOf(headerOf(HEADER.callbackStepName)) : decodeURIComponent(encodedName),
    stepType: 'Call',
    out: JSON.stringify({ status, body: atob(body ?? ''), header }),
    concurrent: Number(headerOf(HEADER.callbackConcurrent)),
  };
}

/** Runtimes read each byte of a header as one character, so UTF-8 has to be decoded again. */
function textOf(value: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(value, (each) => each.charCodeAt(0)));
  } catch {
    return value;
  }
}
