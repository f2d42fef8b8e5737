/** What a workflow may throw, and how an error is told to the server. */
import type { Duration, FailureFunctionPayload, Step } from './types.ts';

/** A workflow, its endpoint or its server does not keep to a rule. */
export class WorkflowError extends Error {
  override name = 'WorkflowError';
  /** Of the server's answer, when that is the reason. */
  readonly status?: number;

  constructor(message: string, status?: number) {
    super(message);
    if (status !== undefined) this.status = status;
  }
}

/** The workflow's code no longer fits the journal of its run. The run waits for code that does, and has not failed. */
export class CodeChangedError extends WorkflowError {
  override name = 'CodeChangedError';
}

/** Ends the call in a way that is no ordinary failure. */
export class WorkflowAbort extends Error {
  override name = 'WorkflowAbort';
  stepName: string;
  stepInfo?: Step;

  constructor(stepName: string, stepInfo?: Step) {
    super(`The call of the workflow ends at '${stepName}'.`);
    this.stepName = stepName;
    if (stepInfo) this.stepInfo = stepInfo;
  }
}

/** Thrown by a workflow or a step: the run fails at once, without another attempt. */
export class WorkflowNonRetryableError extends WorkflowAbort {
  override name = 'WorkflowNonRetryableError';

  constructor(message = 'Workflow failed with non-retryable error.') {
    super('non-retryable-error');
    this.message = message;
  }
}

/** Thrown by a workflow or a step: the next attempt comes after `retryAfter`, a number of seconds or a duration. */
export class WorkflowRetryAfterError extends WorkflowAbort {
  override name = 'WorkflowRetryAfterError';
  retryAfter: number | Duration;

  constructor(message: string, retryAfter: number | Duration) {
    super('retry-after-error');
    this.message = message;
    this.retryAfter = retryAfter;
  }
}

/** The workflow has called `context.cancel()`. */
export class WorkflowCancelAbort extends WorkflowAbort {
  override name = 'WorkflowCancelAbort';

  constructor() {
    super('cancel');
    this.message = 'The workflow has cancelled its run.';
  }
}

/** The body of an answer that reports `error` (contract W 10). */
export function errorPayload(error: unknown): FailureFunctionPayload {
  if (error instanceof Error) {
    return { error: error.name, message: error.message, ...(error.stack !== undefined && { stack: error.stack }) };
  }
  const text = typeof error === 'string' ? error : JSON.stringify(error);
  return { error: 'Error', message: `The workflow has thrown what is no error: ${text}` };
}
