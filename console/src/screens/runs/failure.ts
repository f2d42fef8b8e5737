/** Extracts the cause of a failed run from the app's response. Pure. */
import type { WorkflowRun } from '../../generated/interface.ts';

export interface RunFailure {
  /** The step that failed, if the app named it. */
  step?: string;
  /** The status of the response, or the reason why there was no response. */
  error: string;
  message?: string;
  /** The original response. */
  response: string;
}

export function failureOf({ workflowState, failureFunction, steps }: WorkflowRun): RunFailure | undefined {
  if (workflowState !== 'RUN_FAILED') return undefined;
  const failed = steps.flatMap((group) => [...group.steps]).findLast(({ state }) => state === 'STEP_FAILED');
  const last = failed?.errors?.at(-1);
  const response = last?.body || failureFunction?.failResponse || '';
  const status = failureFunction?.failStatus;
  const error = last?.error ?? (status ? `status ${status}` : 'no response');
  const message = messageIn(response);
  return {
    error,
    response,
    ...(failed?.stepName !== undefined && { step: failed.stepName }),
    ...(message !== undefined && { message }),
  };
}

/** Client libraries respond with `{"error": …, "message": …, "stack": …}`. The text may have been truncated. */
export function messageIn(response: string): string | undefined {
  try {
    const { message } = JSON.parse(response) as { message?: unknown };
    return typeof message === 'string' ? message : undefined;
  } catch {
    return undefined;
  }
}
