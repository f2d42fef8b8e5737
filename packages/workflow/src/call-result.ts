/** The answer of a third party comes back, and enters the journal as the result of its step (contract W 14.5). */
import type { Step } from './types.ts';
import { HEADER } from './wire.ts';

/** What a third party has answered. */
interface CallResult {
  status: number;
  header: Record<string, string[]>;
  /** Base64. */
  body?: string;
  retried?: number;
  maxRetries?: number;
}

/** The step that it is the result of. `undefined`: another result will come. */
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

/** Headers carry bytes; runtimes read each as a character. */
function textOf(value: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(value, (each) => each.charCodeAt(0)));
  } catch {
    return value;
  }
}
