/** Truncates the bodies in a run's log when a client requests only their first bytes (`trimBody`, contract W 17.3). */
import type { RunLog } from './run-log.ts';
import type { StepInfo } from './step-info.ts';

const NOTHING = new Uint8Array(0);

/**
 * Truncates the results of steps to `bytesMax` plus one byte: the additional byte shows that the result was longer.
 * Redacted bodies are not truncated, because views show a hash of the whole body.
 */
export function truncateLog(log: RunLog, bytesMax: number): RunLog {
  if (log.run.config.redact?.body) return log;
  return {
    ...log,
    groups: log.groups.map(({ type, steps }) => ({
      type,
      steps: steps.map((step) => ({ ...step, info: truncateInfo(step.info, bytesMax) })),
    })),
    // No view shows this body, so it is dropped to save memory.
    next: log.next.map((step) => ({ ...step, message: { ...step.message, body: NOTHING } })),
  };
}

function truncateInfo(info: StepInfo, bytesMax: number): StepInfo {
  if (info.redact?.body) return info;
  const cut: StepInfo = { ...info };
  if (info.out) cut.out = truncate(info.out, bytesMax);
  const response = info.call?.response;
  if (response) cut.call = { ...info.call, response: { ...response, body: truncate(response.body, bytesMax) } };
  return cut;
}

/** Copies the bytes that are kept, so that the whole body can be garbage-collected. */
function truncate(bytes: Uint8Array, bytesMax: number): Uint8Array {
  return bytes.length > bytesMax ? new Uint8Array(bytes.subarray(0, bytesMax + 1)) : bytes;
}
