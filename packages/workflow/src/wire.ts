/** Header names and fixed values of the protocol (contract W 4, 6, 9, K 2, 5). */

export const HEADER = {
  runId: 'Upstash-Workflow-RunId',
  url: 'Upstash-Workflow-Url',
  init: 'Upstash-Workflow-Init',
  createdAt: 'Upstash-Workflow-CreatedAt',
  sdkVersion: 'Upstash-Workflow-Sdk-Version',
  unknownSdk: 'Upstash-Workflow-Unknown-Sdk',
  triggerBySdk: 'Upstash-Workflow-trigger-by-sdk',
  callType: 'Upstash-Workflow-CallType',
  invoke: 'Upstash-Workflow-Invoke',
  invokeCount: 'Upstash-Workflow-Invoke-Count',
  isFailure: 'Upstash-Workflow-Is-Failure',
  failureCallback: 'Upstash-Workflow-Failure-Callback',
  noFailureFunction: 'Upstash-Workflow-Failure-Callback-Notfound',
  callback: 'Upstash-Workflow-Callback',
  callbackStepId: 'Upstash-Workflow-StepId',
  callbackStepName: 'Upstash-Workflow-StepName',
  /**
   * This library writes the encoded header in addition to the plain header, which other libraries read. A plain header
   * loses surrounding spaces and its encoding.
   */
  callbackStepNameEncoded: 'Upstash-Workflow-StepName-Encoded',
  callbackStepType: 'Upstash-Workflow-StepType',
  callbackConcurrent: 'Upstash-Workflow-Concurrent',
  callbackContentType: 'Upstash-Workflow-ContentType',
  checkpoint: 'Upstash-Workflow-Checkpoint',
  end: 'Upstash-Workflow-End',
  endStep: 'Upstash-Workflow-End-Step',
  codeChanged: 'Upstash-Workflow-Code-Changed',
  label: 'Upstash-Label',
  features: 'Upstash-Feature-Set',
  messageId: 'Upstash-Message-Id',
  retried: 'Upstash-Retried',
  signature: 'Upstash-Signature',
  nonRetryable: 'Upstash-NonRetryable-Error',
  errorStepName: 'Upstash-Error-Step-Name',
  sdk: 'Upstash-workflow-sdk',
} as const;

/** The version of the protocol, not of the package. */
export const PROTOCOL_VERSION = '1';

/** The library and version that requests report to the server (contract W 6). */
export const SDK = 'v1.3.3-waypost';

export const FEATURES = 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig';
/** For messages to other services, whose failure does not end the run. */
export const FEATURES_OF_CALL = 'WF_NoDelete,InitialBody';

/**
 * Headers by lower-case name. A header with the prefix `Waypost-` is also listed with the prefix `Upstash-`, which this library
 * reads, unless the request has that header itself (contract W 1).
 */
export function inBothDialects(headers: Iterable<[string, string]>): Map<string, string> {
  const pairs = Array.from(headers, ([name, value]): [string, string] => [name.toLowerCase(), value]);
  const twins = pairs.map(([name, value]): [string, string] => [name.replace(/^waypost-/, 'upstash-'), value]);
  return new Map([...twins, ...pairs]);
}
