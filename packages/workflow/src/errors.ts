/** Errors that a workflow may throw, and how an error is reported to the server. */
import type { Duration, FailureFunctionPayload, Step } from './types.ts';

/** Thrown when a workflow, its endpoint or the server violates the API or the protocol. */
export class WorkflowError extends Error {
  override name = 'WorkflowError';
  /** The status of the server's response, if the response is the cause. */
  readonly status?: number;

  constructor(message: string, status?: number) {
    super(message);
    if (status !== undefined) this.status = status;
  }
}

/** The workflow's code no longer matches the journal of its run. The run has not failed: it is parked until matching code is deployed. */
export class CodeChangedError extends WorkflowError {
  override name = 'CodeChangedError';
}

/** Ends the call without being an ordinary failure. */
export class WorkflowAbort extends Error {
  override name = 'WorkflowAbort';
  stepName: string;
  stepInfo?: Step;

  constructor(stepName: string, stepInfo?: Step) {
    super(`The workflow call stops at '${stepName}'.`);
    this.stepName = stepName;
    if (stepInfo) this.stepInfo = stepInfo;
  }
}

/** Thrown by a workflow or a step: the run fails at once, without a retry. */
export class WorkflowNonRetryableError extends WorkflowAbort {
  override name = 'WorkflowNonRetryableError';

  constructor(message = 'Workflow failed with non-retryable error.') {
    super('non-retryable-error');
    this.message = message;
  }
}

/** Thrown by a workflow or a step: the next attempt follows after `retryAfter`, a number of seconds or a duration. */
export class WorkflowRetryAfterError extends WorkflowAbort {
  override name = 'WorkflowRetryAfterError';
  retryAfter: number | Duration;

  constructor(message: string, retryAfter: number | Duration) {
    super('retry-after-error');
    this.message = message;
    this.retryAfter = retryAfter;
  }
}

/** The workflow called `context.cancel()`. */
export class WorkflowCancelAbort extends WorkflowAbort {
  override name = 'WorkflowCancelAbort';

  constructor() {
    super('cancel');
    this.message = 'The workflow has cancelled its run.';
  }
}

/** The body of a response that reports `error` (contract W 10). */
export function errorPayload(error: unknown): FailureFunctionPayload {
  if (error instanceof Error) {
    return { error: error.name, message: error.message, ...(error.stack !== undefined && { stack: error.stack }) };
  }
  const text = typeof error === 'string' ? error : JSON.stringify(error);
  return { error: 'Error', message: `The workflow threw a value that is not an Error: ${text}` };
}
