/** The answer of a third party comes back, and enters the journal as the result of its step (contract W 14.5). */
import { answer } from './answers.ts';
import { Call, CallOver } from './call.ts';
import { type Delivery, fetchBody, findsStep, tokenOf, type Workflow } from './delivery.ts';
import type { Reply } from './http.ts';
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

export async function bringCallResult<TInitialPayload, TResult>(
  workflow: Workflow<TInitialPayload, TResult>,
  delivery: Delivery<TInitialPayload>,
): Promise<Reply> {
  const { endpoint, headers } = delivery;
  const { workflowRunId } = delivery.facts;
  const text = delivery.body || (await fetchBody(delivery));
  if (text === undefined) return answer(workflowRunId, 'workflow-already-ended');
  if (!(await findsStep(workflow, delivery, text))) return answer(workflowRunId, 'auth-fail');
  const result = JSON.parse(text) as CallResult;
  const isFinal = (result.status >= 200 && result.status < 300) || (result.retried ?? 0) === (result.maxRetries ?? 0);
  if (!isFinal) return answer(workflowRunId, 'fromCallback');
  const step: Step = {
    stepId: Number(headers.get(HEADER.callbackStepId)),
    stepName: utf8HeaderOf(headers, HEADER.callbackStepName),
    stepType: 'Call',
    out: JSON.stringify({ status: result.status, body: atob(result.body ?? ''), header: result.header }),
    concurrent: Number(headers.get(HEADER.callbackConcurrent)),
  };
  const token = tokenOf(headers);
  try {
    await new Call(endpoint.server, token).checkpoint([token], [{ step }]);
  } catch (error) {
    if (!(error instanceof CallOver) || error.reason === 'lost') throw error;
  }
  return answer(workflowRunId, 'fromCallback');
}

/** Headers carry bytes; runtimes read each as a character. */
function utf8HeaderOf(headers: Headers, name: string): string {
  const value = headers.get(name) ?? '';
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(value, (each) => each.charCodeAt(0)));
  } catch {
    return value;
  }
}
