/** Checks whether an endpoint that responded with success speaks the workflow protocol (contract W 5.3, 6.1). */
import type { HeaderMap, RunSettings } from '../protocol/options/settings.ts';
import { marksResponses } from '../protocol/workflow/generations.ts';

const NOT_A_WORKFLOW =
  'detected a non-workflow destination for trigger/invoke. make sure you are sending the request to the correct endpoint';
const TOO_OLD = 'trigger rest api is only usable with sdk versions after v1.0.0 major version';

/**
 * Whether the run continues only if a successful response has a workflow's headers. If so, the headers and body of the response
 * are kept.
 */
export function isDetecting({ init, isRest, features }: RunSettings): boolean {
  return init !== undefined && (isRest === true || marksResponses(features));
}

/**
 * Why the response to the first message of a run shows that the endpoint serves no workflow, in the texts that clients
 * match; `undefined` if it serves one. Only for 2xx responses.
 * Remedy: trigger the URL at which the workflow library serves the workflow; a web page, a login or a proxy in front of it responds with 200, too.
 */
export function detectionError(run: RunSettings, response: HeaderMap): string | undefined {
  if (!isDetecting(run)) return undefined;
  // Libraries before 1.0 also report the version of the protocol, but not their own.
  if (run.isRest) return has(response, 'Workflow-Sdk') ? undefined : TOO_OLD;
  return has(response, 'Workflow-Sdk-Version') ? undefined : NOT_A_WORKFLOW;
}

/**
 * Why a run fails if the delivery for a step with settings of its own got a successful response, but is still the last
 * entry of the journal: the endpoint has neither published the step nor ended the run, and nothing else will be sent.
 * Otherwise a library that requests the same delivery again, because it misses its settings, would leave its run
 * without end or error (contract W 6.6).
 * Remedy: update the workflow library; if it is the newest version, report it: the run has stopped at the step with settings.
 */
export function stepMissingError(): string {
  return 'the response to the delivery for a step with settings of its own lacks the result of the step';
}

/** Whether the response says that the workflow has no failure function (contract W 13.4). */
export function hasNoFailureFunction(response: HeaderMap): boolean {
  return has(response, 'Workflow-Failure-Callback-Notfound');
}

/** Whether the response has the header with either prefix, whatever the dialect of the message (contract W 1.5). */
function has(response: HeaderMap, name: string): boolean {
  return response[`Upstash-${name}`] !== undefined || response[`Waypost-${name}`] !== undefined;
}
