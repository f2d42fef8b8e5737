/** Calls the failure function of a run that has failed (contract W 13). */
import { decodeBase64 } from './base64.ts';
import { CallContext } from './context.ts';
import { type Delivery, reachesStep, type Workflow } from './delivery.ts';
import { WorkflowError } from './errors.ts';
import type { Reply } from './http.ts';
import { INFO } from './middleware.ts';
import { failureFunctionResponse, finishResponse } from './responses.ts';
import type { FailureFunctionPayload } from './types.ts';

interface FailureReport {
  status: number;
  header: Record<string, string[]>;
  /** Base64, as `sourceBody` is. */
  body?: string;
  url: string;
  sourceBody?: string;
  workflowRunId: string;
  workflowCreatedAt: number;
}

export async function handleFailure<TInitialPayload, TResult>(
  workflow: Workflow<TInitialPayload, TResult>,
  { endpoint, facts: delivered, body, middlewares }: Delivery<TInitialPayload>,
): Promise<Reply> {
  const { failureFunction } = workflow.options;
  if (!failureFunction) {
    await middlewares.info(INFO.noFailureFunction);
    return finishResponse(delivered.workflowRunId, 'failure-callback-undefined');
  }
  const failure = JSON.parse(body) as FailureReport;
  const payload = failure.sourceBody ? decodeBase64(failure.sourceBody) : '';
  const facts = {
    ...delivered,
    workflowRunId: failure.workflowRunId,
    workflowRunCreatedAt: failure.workflowCreatedAt,
    url: failure.url,
  };
  if (!(await reachesStep(workflow, { endpoint, facts }, () => endpoint.payloadOf(payload))))
    throw new WorkflowError('Not authorized to run the failure function.'); // apps compare this text
  const { message, stack } = errorOf(failure);
  const result = await failureFunction({
    context: new CallContext({ ...facts, requestPayload: endpoint.payloadOf(payload) }, endpoint.server),
    failStatus: failure.status,
    failResponse: message,
    failHeaders: failure.header,
    failStack: stack,
  });
  await middlewares.info(INFO.failureHandled);
  return failureFunctionResponse(typeof result === 'string' ? result : undefined);
}

/** The error in the last response of the endpoint, if this library wrote it. */
function errorOf({ body }: FailureReport): { message: string; stack: string } {
  const text = body ? decodeBase64(body) : '{}';
  try {
    const { message, stack } = JSON.parse(text) as FailureFunctionPayload;
    if (message) return { message, stack: stack ?? '' };
  } catch {
    // The response is not from this library.
  }
  return { message: `Couldn't parse 'failResponse' in 'failureFunction', received: '${text}'`, stack: '' };
}
