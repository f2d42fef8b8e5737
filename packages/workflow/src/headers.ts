/** Builds the control headers of the messages that a run or a client publishes (contract W 4.2, 4.3). */
import { durationOf } from './durations.ts';
import type { CallSettings, FlowControl, Step } from './types.ts';
import { FEATURES, FEATURES_OF_CALL, HEADER, PROTOCOL_VERSION } from './wire.ts';

/** How a run is started: by a client, by its own endpoint, or by another run. */
export interface RunStart {
  runId: string;
  url: string;
  userHeaders?: Headers;
  failureUrl?: string | undefined;
  retries?: number | undefined;
  /** An expression that gives milliseconds. */
  retryDelay?: string | undefined;
  flowControl?: FlowControl | undefined;
  label?: string | string[] | undefined;
  invokeCount?: number;
  contentType?: string;
}

/** The headers of the message that starts a run. */
export function startHeaders(start: RunStart): Record<string, string> {
  const { runId, url, userHeaders, failureUrl, invokeCount = 0, label } = start;
  const own = { ...settingHeaders(start), ...forwarded('Forward-', userHeaders) };
  if (invokeCount > 0) own[`Forward-${HEADER.invokeCount}`] = String(invokeCount);
  const labels = [label ?? []].flat().join(',');
  return {
    [HEADER.init]: 'true',
    ...runHeaders(runId, url),
    [forward(HEADER.sdkVersion)]: PROTOCOL_VERSION,
    'content-type': start.contentType ?? userHeaders?.get('content-type') ?? 'application/json',
    ...prefixed('Upstash-', own),
    ...(labels !== '' && { [HEADER.label]: labels, [forward(HEADER.label)]: labels }),
    ...(failureUrl !== undefined && {
      'Upstash-Failure-Callback': failureUrl,
      ...prefixed('Upstash-Failure-Callback-', {
        ...own,
        [`Forward-${HEADER.isFailure}`]: 'true',
        [`Forward-${HEADER.failureCallback}`]: 'true',
        'Workflow-Runid': runId,
        'Workflow-Init': 'false',
        'Workflow-Url': url,
        'Workflow-Calltype': 'failureCall',
        'Feature-Set': FEATURES,
      }),
    }),
  };
}

/** The headers of a `context.call`, whose response is delivered to the run. */
export function callHeaders(
  run: { workflowRunId: string; url: string; invokeCount: number },
  step: Step,
  settings: { [K in Exclude<keyof CallSettings, 'url' | 'body'>]?: CallSettings[K] | undefined },
): Record<string, string> {
  const own = new Headers(settings.headers);
  const contentType = own.get('content-type') ?? 'application/json';
  const count = run.invokeCount > 0 ? { [`Forward-${HEADER.invokeCount}`]: String(run.invokeCount) } : {};
  return {
    [HEADER.init]: 'false',
    ...runHeaders(run.workflowRunId, run.url, FEATURES_OF_CALL),
    [HEADER.callType]: 'toCallback',
    'Upstash-Method': settings.method ?? 'GET',
    'content-type': contentType,
    ...prefixed('Upstash-', { ...settingHeaders(settings), ...forwarded('Forward-', own), ...count }),
    'Upstash-Retries': String(settings.retries ?? 0),
    ...(settings.timeout !== undefined && { 'Upstash-Timeout': String(settings.timeout) }),
    'Upstash-Callback': run.url,
    ...prefixed('Upstash-Callback-', {
      'Workflow-RunId': run.workflowRunId,
      'Workflow-CallType': 'fromCallback',
      'Workflow-Init': 'false',
      'Workflow-Url': run.url,
      'Feature-Set': FEATURES,
      [`Forward-${HEADER.callback}`]: 'true',
      [`Forward-${HEADER.callbackStepId}`]: String(step.stepId),
      [`Forward-${HEADER.callbackStepName}`]: step.stepName,
      [`Forward-${HEADER.callbackStepNameEncoded}`]: encodeURIComponent(step.stepName),
      [`Forward-${HEADER.callbackStepType}`]: 'Call',
      [`Forward-${HEADER.callbackConcurrent}`]: String(step.concurrent),
      [`Forward-${HEADER.callbackContentType}`]: contentType,
      ...count,
    }),
  };
}

/** The headers of a message that continues a run, such as the delivery of an invocation's result. */
export function stepHeaders(runId: string, url: string, invokeCount: number): Record<string, string> {
  return {
    [HEADER.init]: 'false',
    ...runHeaders(runId, url),
    [forward(HEADER.sdkVersion)]: PROTOCOL_VERSION,
    'content-type': 'application/json',
    ...(invokeCount > 0 && { [forward(HEADER.invokeCount)]: String(invokeCount) }),
  };
}

function runHeaders(runId: string, url: string, features = FEATURES): Record<string, string> {
  return {
    [HEADER.runId]: runId,
    [HEADER.url]: url,
    [HEADER.features]: features,
    [HEADER.sdkVersion]: PROTOCOL_VERSION,
  };
}

function settingHeaders({
  retries,
  retryDelay,
  flowControl,
}: Pick<RunStart, 'retries' | 'retryDelay' | 'flowControl'>): Record<string, string> {
  return {
    ...(retries !== undefined && { Retries: String(retries) }),
    ...(retryDelay && { 'Retry-Delay': retryDelay }),
    ...(flowControl && { 'Flow-Control-Key': flowControl.key, 'Flow-Control-Value': flowValueOf(flowControl) }),
  };
}

/** The value of `Upstash-Flow-Control-Value`. */
export function flowValueOf(flowControl: FlowControl): string {
  const { parallelism, rate, ratePerSecond, period } = flowControl;
  const items = {
    parallelism,
    rate: rate ?? ratePerSecond,
    ...(period !== undefined && { period: durationOf(period) }),
  };
  return Object.entries(items)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${value}`)
    .join(', ');
}

function forwarded(prefix: string, headers: Headers | undefined): Record<string, string> {
  return headers ? prefixed(prefix, Object.fromEntries(headers)) : {};
}

function prefixed(prefix: string, headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [`${prefix}${name}`, value]));
}

function forward(name: string): string {
  return `Upstash-Forward-${name}`;
}
