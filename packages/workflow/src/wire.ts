/** The names and fixed values of the wire (contract W 4, 6, 9, K 2, 5). */

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
  /** Of this library, beside the one that others read: a header loses spaces around a name, and which encoding it has. */
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

/** Of the protocol, not of the package. */
export const PROTOCOL_VERSION = '1';

/** What a server is told of a library that speaks this protocol (contract W 6). */
export const SDK = 'v1.3.3-waypost';

export const FEATURES = 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig';
/** Of a message to somebody else: its failure does not end the run. */
export const FEATURES_OF_CALL = 'WF_NoDelete,InitialBody';

/**
 * Headers by their names in lower case. What has the prefix `Waypost-` has the other one too, by which it is read here, unless
 * there is a header of that name (contract W 1).
 */
export function inBothDialects(headers: Iterable<[string, string]>): Map<string, string> {
  const pairs = Array.from(headers, ([name, value]): [string, string] => [name.toLowerCase(), value]);
  const twins = pairs.map(([name, value]): [string, string] => [name.replace(/^waypost-/, 'upstash-'), value]);
  return new Map([...twins, ...pairs]);
}
