/** Builds the headers of workflow requests (contract W 4.3, 14), as sent by two generations of the client library. */
import { hash } from 'node:crypto';
import type { Delivery } from './workflow-library.ts';
import type { Step } from './workflow-programs.ts';

/** The facts about a run that its later requests repeat. */
export interface RunContext {
  runId: string;
  createdAtMs: number;
  url: string;
  /** The `X-User` header of the trigger. Later messages of the new generation must inherit it. */
  user: string;
  /** The depth of the chain of invocations. */
  invokeCount: number;
}

type Headers = Record<string, string>;

const FEATURES_TODAY = 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig';
const FEATURES_OLDER = 'LazyFetch,InitialBody,WF_DetectTrigger';

/** Whether the run is of the older generation, which repeats the trigger's configuration with each message. */
export function isOlderGeneration(url: string): boolean {
  return url.endsWith('/before');
}

export function contextOf({ headers, runId, createdAtMs }: Delivery): RunContext {
  return {
    runId,
    createdAtMs,
    url: headers.get('upstash-workflow-url') ?? '',
    user: headers.get('x-user') ?? '',
    invokeCount: Number(headers.get('upstash-workflow-invoke-count') ?? 0),
  };
}

/** The headers of all messages to the workflow itself. */
function commonHeaders({ url, runId }: RunContext): Headers {
  return {
    'upstash-workflow-runid': runId,
    'upstash-workflow-url': url,
    'upstash-feature-set': isOlderGeneration(url) ? FEATURES_OLDER : FEATURES_TODAY,
  };
}

/** The headers that start a run. `attempts` sets retries and delays for the whole run. */
export function triggerHeaders(context: RunContext, attempts: Headers): Headers {
  return {
    ...commonHeaders(context),
    ...attempts,
    ...forwarded(context, 'upstash-forward-'),
    'upstash-workflow-init': 'true',
    'upstash-workflow-sdk-version': '1',
    'upstash-forward-upstash-workflow-sdk-version': '1',
    'upstash-forward-x-user': context.user,
    'upstash-method': 'POST',
    'content-type': 'application/json',
    traceparent: traceOf(context.runId),
    ...failureHeaders(context),
  };
}

/** The trace of the trigger. An invoked run stays in the trace of the invoking run. */
function traceOf(runId: string): string {
  return `00-${hash('md5', runId, 'hex')}-00f067aa0ba902b7-01`;
}

/** A failure is reported to the workflow itself. */
function failureHeaders(context: RunContext): Headers {
  return {
    'upstash-failure-callback': context.url,
    'upstash-failure-callback-forward-upstash-workflow-is-failure': 'true',
    'upstash-failure-callback-forward-upstash-workflow-failure-callback': 'true',
    'upstash-failure-callback-forward-x-user': context.user,
    'upstash-failure-callback-workflow-runid': context.runId,
    'upstash-failure-callback-workflow-init': 'false',
    'upstash-failure-callback-workflow-url': context.url,
    'upstash-failure-callback-workflow-calltype': 'failureCall',
    'upstash-failure-callback-feature-set': commonHeaders(context)['upstash-feature-set'] ?? '',
  };
}

/** The headers of a step, of a plan, or of the delivery of a result. */
export function stepHeaders(context: RunContext): Headers {
  return {
    ...commonHeaders(context),
    ...repeated(context),
    ...forwarded(context, 'upstash-forward-'),
    ...createdAtHeader(context),
    'upstash-workflow-init': 'false',
    'upstash-workflow-calltype': 'step',
    'upstash-workflow-sdk-version': '1',
    'upstash-forward-upstash-workflow-sdk-version': '1',
    'upstash-method': 'POST',
    'content-type': 'application/json',
  };
}

/** The headers of a call, whose response becomes the result of step `stepId`. */
export function callHeaders(
  context: RunContext,
  { step, stepId, concurrent }: { step: Extract<Step, { kind: 'call' }>; stepId: number; concurrent: number },
): Headers {
  const headers: Headers = {
    ...commonHeaders(context),
    ...createdAtHeader(context),
    'upstash-feature-set': 'WF_NoDelete,InitialBody',
    'upstash-workflow-init': 'false',
    'upstash-workflow-calltype': 'toCallback',
    'upstash-workflow-sdk-version': '1',
    'upstash-method': 'POST',
    'upstash-retries': String(step.retries),
    'upstash-retry-delay': '500',
    'upstash-timeout': '3s',
    'upstash-callback': context.url,
    'upstash-callback-workflow-calltype': 'fromCallback',
    'upstash-callback-workflow-init': 'false',
    'upstash-callback-forward-upstash-workflow-callback': 'true',
    'upstash-callback-forward-upstash-workflow-stepid': String(stepId),
    'upstash-callback-forward-upstash-workflow-stepname': step.name,
    'upstash-callback-forward-upstash-workflow-steptype': 'Call',
    'upstash-callback-forward-upstash-workflow-concurrent': String(concurrent),
  };
  const toWorkflow = { ...commonHeaders(context), ...repeated(context), ...forwarded(context, 'upstash-forward-') };
  for (const [name, value] of Object.entries(toWorkflow)) headers[`upstash-callback${name.slice(7)}`] = value;
  return headers;
}

/** Distinguishes the runs of one id. The older generation does not send this header, so its runs must have unique ids. */
function createdAtHeader({ url, createdAtMs }: RunContext): Headers {
  return isOlderGeneration(url) ? {} : { 'upstash-workflow-createdat': String(createdAtMs) };
}

function forwarded({ invokeCount }: RunContext, prefix: string): Headers {
  return invokeCount > 0 ? { [`${prefix}upstash-workflow-invoke-count`]: String(invokeCount) } : {};
}

function repeated(context: RunContext): Headers {
  if (!isOlderGeneration(context.url)) return {};
  return {
    ...failureHeaders(context),
    'upstash-forward-x-user': context.user,
    'upstash-retries': '4',
    'upstash-retry-delay': '1000',
  };
}
