/** With which headers does a workflow send what (contract W 4.3, 14)? Of both generations of the client library. */
import { hash } from 'node:crypto';
import type { Delivery } from './workflow-library.ts';
import type { Step } from './workflow-programs.ts';

/** What of a run its next requests repeat. */
export interface RunContext {
  runId: string;
  createdAtMs: number;
  url: string;
  /** `X-User`, which was given to the trigger: later messages of a run of today must get it from there. */
  user: string;
  /** How deep it was invoked. */
  invokeCount: number;
}

type Headers = Record<string, string>;

const FEATURES_TODAY = 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig';
const FEATURES_BEFORE = 'LazyFetch,InitialBody,WF_DetectTrigger';

/** Those of the older generation repeat with each message what the trigger fixed. */
export function isOfBefore(url: string): boolean {
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

/** For whatever is sent to the workflow itself, by whomever. */
function commonHeaders({ url, runId }: RunContext): Headers {
  return {
    'upstash-workflow-runid': runId,
    'upstash-workflow-url': url,
    'upstash-feature-set': isOfBefore(url) ? FEATURES_BEFORE : FEATURES_TODAY,
  };
}

/** Begins a run. `attempts` fixes retries and delays for all of it. */
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

/** Of whoever triggers it; an invoked run is in the trace of its parent all the same. */
function traceOf(runId: string): string {
  return `00-${hash('md5', runId, 'hex')}-00f067aa0ba902b7-01`;
}

/** Whom a failure is told: the workflow itself. */
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

/** A step, a plan, or the way in which a result is to be delivered. */
export function stepHeaders(context: RunContext): Headers {
  return {
    ...commonHeaders(context),
    ...repeated(context),
    ...forwarded(context, 'upstash-forward-'),
    ...incarnation(context),
    'upstash-workflow-init': 'false',
    'upstash-workflow-calltype': 'step',
    'upstash-workflow-sdk-version': '1',
    'upstash-forward-upstash-workflow-sdk-version': '1',
    'upstash-method': 'POST',
    'content-type': 'application/json',
  };
}

/** A call of somebody else, whose answer comes back as `stepId`. */
export function callHeaders(
  context: RunContext,
  { step, stepId, concurrent }: { step: Extract<Step, { kind: 'call' }>; stepId: number; concurrent: number },
): Headers {
  const headers: Headers = {
    ...commonHeaders(context),
    ...incarnation(context),
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

/** Which of the runs of an id it is: those of the older generation cannot say, and must have ids of their own. */
function incarnation({ url, createdAtMs }: RunContext): Headers {
  return isOfBefore(url) ? {} : { 'upstash-workflow-createdat': String(createdAtMs) };
}

function forwarded({ invokeCount }: RunContext, prefix: string): Headers {
  return invokeCount > 0 ? { [`${prefix}upstash-workflow-invoke-count`]: String(invokeCount) } : {};
}

function repeated(context: RunContext): Headers {
  if (!isOfBefore(context.url)) return {};
  return {
    ...failureHeaders(context),
    'upstash-forward-x-user': context.user,
    'upstash-retries': '4',
    'upstash-retry-delay': '1000',
  };
}
