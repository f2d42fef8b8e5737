/** Why a run failed, as its app said it. Pure. */
import type { WorkflowRun } from '../../generated/interface.ts';

export interface RunFailure {
  /** The step that failed, where the app named it. */
  step?: string;
  /** Status, or why there was none. */
  error: string;
  message?: string;
  /** The answer as it came. */
  response: string;
}

export function failureOf({ workflowState, failureFunction, steps }: WorkflowRun): RunFailure | undefined {
  if (workflowState !== 'RUN_FAILED') return undefined;
  const failed = steps.flatMap((group) => [...group.steps]).findLast(({ state }) => state === 'STEP_FAILED');
  const last = failed?.errors?.at(-1);
  const response = last?.body || failureFunction?.failResponse || '';
  const status = failureFunction?.failStatus;
  const error = last?.error ?? (status ? `answered ${status}` : 'no answer');
  const message = messageIn(response);
  return {
    error,
    response,
    ...(failed?.stepName !== undefined && { step: failed.stepName }),
    ...(message !== undefined && { message }),
  };
}

/** Client libraries answer `{"error": …, "message": …, "stack": …}`; the text may have been cut. */
export function messageIn(response: string): string | undefined {
  try {
    const { message } = JSON.parse(response) as { message?: unknown };
    return typeof message === 'string' ? message : undefined;
  } catch {
    return undefined;
  }
}
