/** The responses of the endpoint to a delivery (contract W 10, K 5). */
import type { Token } from './call.ts';
import { CodeChangedError, errorPayload, WorkflowNonRetryableError, WorkflowRetryAfterError } from './errors.ts';
import type { Reply } from './http.ts';
import { HEADER, PROTOCOL_VERSION, SDK } from './wire.ts';

const LIBRARY_HEADERS = { [HEADER.sdkVersion]: PROTOCOL_VERSION, [HEADER.sdk]: SDK };

/**
 * Apps compare this text, both in responses and in the arguments of a failure function, so the text matches the official
 * library's text (contract W 10).
 */
export const AUTHENTICATION_FAILED =
  'Failed to authenticate Workflow request. If this is unexpected, see the caveat https://upstash.com/docs/workflow/basics/caveats#avoid-non-deterministic-code-outside-context-run';

type Finish =
  | 'success'
  | 'duplicate-step'
  | 'fromCallback'
  | 'workflow-already-ended'
  | 'auth-fail'
  | 'failure-callback-undefined';

/** Ends the run. */
export interface RunEnd {
  token: Token;
  /** The last step, if it is not saved yet. */
  lastStep?: { text: string; bytes: number };
}

export function finishResponse(workflowRunId: string, finish: 'ended', end: RunEnd & { result: unknown }): Reply;
export function finishResponse(workflowRunId: string, finish: Finish): Reply;
export function finishResponse(
  workflowRunId: string,
  finish: Finish | 'ended',
  end?: RunEnd & { result: unknown },
): Reply {
  switch (finish) {
    case 'ended':
      return runEndResponse(end?.token ?? '', end?.lastStep, JSON.stringify(end?.result) ?? '');
    case 'auth-fail':
      return respond(400, JSON.stringify({ message: AUTHENTICATION_FAILED, workflowRunId }));
    case 'failure-callback-undefined':
      return respond(200, JSON.stringify({ workflowRunId, finishCondition: finish }), {
        [HEADER.noFailureFunction]: 'true',
      });
    default:
      return respond(200, JSON.stringify({ workflowRunId, finishCondition: finish }));
  }
}

function runEndResponse(token: Token, lastStep: RunEnd['lastStep'], result: string): Reply {
  if (!lastStep) return respond(200, result, { [HEADER.end]: token });
  return respond(200, lastStep.text + result, { [HEADER.end]: token, [HEADER.endStep]: String(lastStep.bytes) });
}

/** The response after the failure function has run and returned `result`. */
export function failureFunctionResponse(result: string | undefined): Reply {
  return respond(200, JSON.stringify({ result }));
}

/** The response at a URL where no workflow is served. */
export function notFound(name: string): Reply {
  return respond(404, `There is no workflow '${name}' here.`);
}

/** The response after the workflow, or the code that serves it, threw `error` in the step named `stepName`. */
export function errorResponse(error: unknown, stepName?: string): Reply {
  const body = JSON.stringify(errorPayload(error));
  const stepHeader: Record<string, string> =
    stepName === undefined ? {} : { [HEADER.errorStepName]: headerText(stepName) };
  if (error instanceof CodeChangedError) return respond(409, body, { [HEADER.codeChanged]: 'true' });
  if (error instanceof WorkflowNonRetryableError)
    return respond(489, body, { ...stepHeader, [HEADER.nonRetryable]: 'true' });
  if (error instanceof WorkflowRetryAfterError)
    return respond(429, body, { ...stepHeader, 'Retry-After': String(error.retryAfter) });
  return respond(500, body, stepHeader);
}

function respond(status: number, body: string, headers: Record<string, string> = {}): Reply {
  return { status, headers: { ...LIBRARY_HEADERS, ...headers }, body };
}

/** Removes the characters that a header value cannot contain: control characters, and characters above one byte. */
function headerText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to remove
  return text.replace(/[\x00-\x1f\x7f]|[^\x00-\xff]/g, '');
}
