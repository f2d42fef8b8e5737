/**
 * How runs, their steps and events look on the wire (contract W 18, 20). Unset members are absent, since
 * `JSON.stringify` drops `undefined`. Redacted content of a run is never shown (contract W 16.3).
 */
import { STATUS_CODES } from 'node:http';
import { answeredWith } from '../../engine/messages/decide.ts';
import type { LogDetail } from '../../engine/model.ts';
import type { RunExplanation } from '../../engine/runs/logs/explain.ts';
import type { RunEvent } from '../../engine/runs/logs/log-store.ts';
import { bodyText } from '../../protocol/bodies.ts';
import type { HeaderMap, Redaction } from '../../protocol/options/settings.ts';
import { isSuccess } from '../../protocol/options/success.ts';
import { joinRedactions, redactedText, shownHeaderMap } from '../../protocol/redaction.ts';
import { shownUrl } from '../../protocol/urls/shown-url.ts';
import type { Answered, Failure, FailureFunction } from '../../workflow/history.ts';
import type { RunLink } from '../../workflow/model.ts';
import type { StepRecord } from '../../workflow/records.ts';
import type { NextStep, RunLog } from '../../workflow/run-log.ts';
import { type CallInfo, type InvokedInfo, type StepInfo, stepInfoOf, type WaitInfo } from '../../workflow/step-info.ts';
import { FAILURE_CALLBACK_STATES, labelView, nonEmpty, type View } from '../messages/views.ts';

/** The delays of contract M 8.2 as an expression, for messages that set none. */
const DEFAULT_RETRY_DELAY = 'min(86400000, floor(exp(2.5 * (1 + retried))) * 1000)';

/** The parts of a run that may be shown, and how much of each body. */
interface Shown {
  redact: Redaction | undefined;
  /** Absent: whole bodies. */
  bodyBytesMax: number | undefined;
}

/** A message may hide more than its run does. */
function withRedaction(shown: Shown, own: Redaction | undefined): Shown {
  return own ? { ...shown, redact: joinRedactions(shown.redact, own) } : shown;
}

/** The object of contract W 18.2. */
export function runEventView(event: RunEvent): View {
  const { atMs, state, run, message, record, child, detail } = event;
  const { config } = run;
  const shown = withRedaction({ redact: config?.redact, bodyBytesMax: undefined }, message?.settings.redact);
  const isInitial = message?.settings.run?.init !== undefined;
  const info = message && stepInfoOf(message, { isInitial, ...(record && { record }), ...(child && { child }) });
  return {
    time: atMs,
    state,
    workflowRunId: run.id,
    workflowUrl: shownUrl(run.url),
    workflowCreatedAt: run.createdAtMs,
    stepInfo: info && stepInfoView(info, shown),
    ...detailView(detail, shown),
    nextDeliveryTime: nextDeliveryTime(event),
    headers: state === 'ERROR' && message ? headerView(message.header, shown) : undefined,
    invokerWorkflowRunId: run.invoker?.id,
    invokerWorkflowUrl: run.invoker && shownUrl(run.invoker.url),
    invokerWorkflowCreatedAt: run.invoker?.createdAtMs,
    workflowRunResponse: bodyView(run.response, shown),
    dlqId: run.dlqId,
    ...labelView({ labels: config?.labels ?? message?.settings.labels }),
    callerIp: run.callerIp,
  };
}

/** The object of contract W 18.1. */
export function runLogView({ run, groups, next, failureFunction, failure }: RunLog, bodyBytesMax?: number): View {
  const { config, invoker } = run;
  const shown: Shown = { redact: config.redact, bodyBytesMax };
  const steps = groups.map(({ type, records }) => ({
    steps: records.map((record) => recordView(record, shown)),
    type,
  }));
  return {
    workflowRunId: run.id,
    workflowUrl: shownUrl(run.url),
    workflowState: run.state,
    workflowRunCreatedAt: run.createdAtMs,
    workflowRunCompletedAt: run.completedAtMs,
    workflowRunCallerIp: run.callerIp,
    steps: next.length === 0 ? steps : [...steps, { steps: next.map((step) => nextView(step, shown)), type: 'next' }],
    workflowRunResponse: bodyView(run.response, shown),
    invoker: invoker && {
      workflowRunId: invoker.id,
      workflowUrl: shownUrl(invoker.url),
      workflowRunCreatedAt: invoker.createdAtMs,
    },
    failureFunction: failureFunction && failureFunctionView(failureFunction, failure, run.dlqId, shown),
    dlqId: run.dlqId,
    ...labelView(config),
    flowControlKey: config.flowControl?.key,
    predecessor: linkView(config.predecessor),
    successor: linkView(config.successor),
  };
}

/** Our own addition: the run that a resume or a restart made of a failed one, and back. */
function linkView(link: RunLink | undefined): View | undefined {
  return link && { workflowRunId: link.id, workflowRunCreatedAt: link.createdAtMs };
}

/** Our own addition: why a run does not go on, in one sentence and in fields. */
export function runExplanationView({ runId, createdAtMs, sentence, ...rest }: RunExplanation): View {
  const { reason, others, sinceMs, dueAtMs, atMs, invokedRunId, ...fields } = rest;
  return {
    workflowRunId: runId,
    workflowCreatedAt: createdAtMs,
    reason,
    explanation: sentence,
    others,
    ...fields,
    since: sinceMs,
    due: dueAtMs,
    at: atMs,
    invokedWorkflowRunId: invokedRunId,
  };
}

function recordView({ info, state, failures, nextDeliveryAtMs }: StepRecord, runShown: Shown): View {
  const shown = withRedaction(runShown, info.redact);
  return {
    ...stepInfoView(info, shown),
    state,
    ...errorsView(failures, shown),
    nextDeliveryTime: nextDeliveryAtMs,
  };
}

function nextView({ message, state, failures, stepName, nextDeliveryAtMs }: NextStep, runShown: Shown): View {
  const shown = withRedaction(runShown, message.settings.redact);
  const { maxRetries, retryDelayExpression } = message.settings;
  return {
    messageId: message.id,
    stepName,
    state,
    ...retryView({ maxRetries, retryDelayExpression }),
    ...errorsView(failures, shown),
    nextDeliveryTime: nextDeliveryAtMs,
  };
}

/** The fields of contract W 20. Zero and empty values are left out, except the number of retries. */
function stepInfoView(info: StepInfo, runShown: Shown): View {
  const shown = withRedaction(runShown, info.redact);
  return {
    stepId: info.stepId || undefined,
    stepName: info.stepName,
    stepType: info.stepType,
    callType: info.callType,
    messageId: info.messageId,
    concurrent: info.concurrent,
    targetStep: info.targetStep,
    createdAt: info.createdAtMs,
    out: bodyView(info.out, shown),
    headers: headerView(info.header, shown),
    ...retryView(info),
    sleepFor: info.sleepForMs,
    sleepUntil: info.sleepUntilMs,
    ...(info.call && callView(info.call, shown)),
    ...(info.wait && waitView(info.wait)),
    ...(info.invoked && invokedView(info.invoked, shown)),
  };
}

function retryView({ maxRetries, retryDelayExpression }: Retrying): View {
  const retryDelay = retryDelayExpression ?? (maxRetries > 0 ? DEFAULT_RETRY_DELAY : undefined);
  return { retries: maxRetries, retryDelay };
}

interface Retrying {
  maxRetries: number;
  retryDelayExpression?: string | undefined;
}

function callView({ url, method, header, body, response }: Partial<CallInfo>, shown: Shown): View {
  return {
    callUrl: url && shownUrl(url),
    callMethod: method,
    callHeaders: header && headerView(header, shown),
    callBody: bodyView(body, shown),
    callResponseStatus: response?.status,
    callResponseBody: bodyView(response?.body, shown),
    callResponseHeaders: response && headerView(response.header, shown),
  };
}

function waitView({ eventId, timeout, deadlineMs, isTimeout }: WaitInfo): View {
  return {
    waitEventId: eventId,
    waitTimeoutDuration: timeout,
    waitTimeoutDeadline: deadlineMs,
    waitTimeout: isTimeout || undefined,
  };
}

/** The invoked run may hide more than its invoker. */
function invokedView({ runId, url, createdAtMs, first }: InvokedInfo, parentShown: Shown): View {
  const shown = withRedaction(parentShown, first?.settings.redact);
  return {
    invokedWorkflowRunId: runId,
    invokedWorkflowUrl: shownUrl(url),
    invokedWorkflowCreatedAt: createdAtMs,
    invokedWorkflowRunBody: bodyView(first?.body, shown),
    invokedWorkflowRunHeaders: first && headerView(first.header, shown),
  };
}

function errorsView(failures: readonly Failure[], shown: Shown): View {
  return failures.length === 0 ? {} : { errors: failures.map((failure) => failureView(failure, shown)) };
}

/** Members are present even when they are empty, since clients read them without a check. */
function failureView({ atMs, error, response }: Failure, shown: Shown): View {
  return {
    error: errorText(error, response),
    body: bodyView(response?.body, shown) ?? '',
    headers: shownHeaderMap(response?.header ?? {}, shown.redact),
    status: response?.status,
    time: atMs,
  };
}

/**
 * `<status> <reason>`, as clients expect it, with further text if there is any. An answer with a success status, and one
 * that says that the code has changed, has only the text of the error.
 */
function errorText(error: string | undefined, response: Pick<Answered, 'status'> | undefined): string | undefined {
  if (!response || isSuccess(response.status)) return error;
  const { status } = response;
  if (error !== undefined && !error.startsWith(answeredWith(status))) return error;
  const known = `${status} ${STATUS_CODES[status] ?? ''}`.trimEnd();
  return `${known}${error?.slice(answeredWith(status).length) ?? ''}`;
}

/** The step shows the whole answer that the run failed with; a longer one is cut here, so as not to be sent twice. */
const FAIL_RESPONSE_BYTES_MAX = 64 * 1024;

function failureFunctionView(
  { state, message, failures, answer, pending }: FailureFunction,
  failure: Failure | undefined,
  dlqId: string | undefined,
  shown: Shown,
): View {
  const last = answer ?? failures.at(-1)?.response;
  const isRetrying = pending && !pending.isInFlight && failures.length > 0;
  return {
    messageId: message.id,
    url: shownUrl(message.url),
    state: FAILURE_CALLBACK_STATES[state],
    failStatus: failure?.response?.status ?? 0,
    failResponse: bodyView(failure?.response?.body, cutTo(FAIL_RESPONSE_BYTES_MAX, shown)) ?? '',
    failHeaders: shownHeaderMap(failure?.response?.header ?? {}, shown.redact),
    dlqId,
    maxRetries: message.settings.maxRetries,
    responseStatus: last?.status,
    responseBody: bodyView(last?.body, shown),
    responseHeaders: last && headerView(last.header, shown),
    ...errorsView(failures, shown),
    nextDeliveryTime: isRetrying ? pending.dueAtMs : undefined,
  };
}

function detailView(detail: LogDetail | undefined, shown: Shown): View {
  if (!detail) return {};
  const { error, response } = detail;
  return {
    error: errorText(error, response),
    responseStatus: response?.status,
    responseBody: bodyView(response?.body, shown),
    responseHeaders: response && headerView(response.header, shown),
  };
}

/** A created message shows when it is first due, a failed one when it is due again. */
function nextDeliveryTime({ state, message, detail }: RunEvent): number | undefined {
  if (state === 'RETRY' || state === 'STEP_PARKED') return detail?.nextDeliveryTimeMs;
  return state === 'CREATED' ? (detail?.nextDeliveryTimeMs ?? message?.notBeforeMs) : undefined;
}

function cutTo(bytesMax: number, { redact, bodyBytesMax = bytesMax }: Shown): Shown {
  return { redact, bodyBytesMax: Math.min(bytesMax, bodyBytesMax) };
}

/** As text, or as base64 when it is not valid UTF-8; `undefined` when there is nothing to show. */
function bodyView(bytes: Uint8Array | undefined, { redact, bodyBytesMax }: Shown): string | undefined {
  if (!bytes || bytes.length === 0 || bodyBytesMax === 0) return undefined;
  return redact?.body ? redactedText(bytes) : bodyText(bytes, bodyBytesMax);
}

function headerView(header: HeaderMap, { redact }: Shown): HeaderMap | undefined {
  return nonEmpty(shownHeaderMap(header, redact));
}
