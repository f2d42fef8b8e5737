/**
 * Converts messages, DLQ entries, log entries and schedules to their JSON objects (contract M 15.1, 17, 18.1, 22.4). Where
 * clients read different spellings of a member, both are present. The schemas are in `schemas.ts`, because the OpenAPI
 * document lists the members in another order.
 */
import type { ExplainedMessage, Explanation } from '../../engine/messages/explain.ts';
import type { DeadLetter, FailureCallbackState, LogDetail, Message } from '../../engine/model.ts';
import type { DeadRun, FailureCallback } from '../../engine/runs/dead/dead-run-store.ts';
import type { TriggeredState } from '../../engine/schedules/schedules.ts';
import type { ScheduleView } from '../../engine/schedules/store.ts';
import type { DeadMessage, LogEntry } from '../../engine/stores.ts';
import { base64OfBytes, textOrBase64 } from '../../protocol/bodies.ts';
import { SHOWN_OPTIONS } from '../../protocol/options/config-options.ts';
import type {
  CallbackSettings,
  FlowControl,
  HeaderMap,
  MessageSettings,
  Redaction,
} from '../../protocol/options/settings.ts';
import { mergeRedactions, redactedText, redactHeaderMap } from '../../protocol/redaction.ts';
import { maskPassword } from '../../protocol/urls/masked-url.ts';
import { BLOCKER, type View } from '../schemas.ts';

/** The object of contract M 22.4. */
export function messageView(message: Message): View {
  const { settings } = message;
  return {
    messageId: message.id,
    ...destinationView(message),
    method: message.method,
    header: headerView(message.header, settings),
    ...bodyView(message),
    maxRetries: settings.maxRetries,
    notBefore: message.notBeforeMs,
    createdAt: message.createdAtMs,
    ...callbacksView(settings),
    queueName: settings.queueName,
    scheduleId: settings.scheduleId,
    replayOf: settings.replayOf,
    ...callerIpView(message),
    ...labelView(settings),
    ...flowControlView(settings.flowControl),
    ...optionsView(settings),
  };
}

/** The reason why a message waits, as a sentence and as fields. Our own addition. */
export function explanationView({ sentence, sinceMs, dueAtMs, atMs, ...fields }: Explanation): View {
  const { reason, retried, queueName, ahead, blockedBy, flowControlKey, dlqId, replays } = fields;
  const lane = { queueName, ahead, blockedBy: blockedBy && BLOCKER.view(blockedBy), flowControlKey };
  return { reason, explanation: sentence, retried, since: sinceMs, due: dueAtMs, at: atMs, dlqId, ...lane, replays };
}

/** An unfinished message in a list, with the size of its body instead of the body. Our own addition. */
export function unfinishedView({ message, unfinishedState, bodyBytes, explanation }: ExplainedMessage): View {
  return { ...explanationView(explanation), ...messageView(message), bodyBytes, state: unfinishedState };
}

/** The object of the message and the response of its last attempt. */
export function deadMessageView({ dlqId, message, deadLetter }: DeadMessage): View {
  return { ...messageView(message), dlqId, ...lastResponseView(deadLetter) };
}

/** The state `none` is omitted. */
export const FAILURE_CALLBACK_STATES: Record<FailureCallbackState, string | undefined> = {
  inProgress: 'CALLBACK_INPROGRESS',
  success: 'CALLBACK_SUCCESS',
  fail: 'CALLBACK_FAIL',
  canceled: 'CALLBACK_CANCELED',
  none: undefined,
};

/** A failed run: its dead message, with the payload of the run as the body (contract W 21.1). */
export function deadRunView({ dlqId, run, message, deadLetter, payload, failureCallback }: DeadRun): View {
  const { labels, flowControl, redact } = run.config;
  const callback = run.config.isKept ? run.config.failureCallback : message.settings.failureCallback;
  const settings: MessageSettings = {
    ...message.settings,
    ...(labels && { labels }),
    ...(flowControl && { flowControl }),
    ...(redact && { redact }),
    ...(callback && { failureCallback: callback }),
  };
  const state = failureCallback && FAILURE_CALLBACK_STATES[failureCallback.state];
  return {
    ...messageView({ ...message, body: payload, settings }),
    dlqId,
    workflowRunId: run.id,
    workflowUrl: maskPassword(run.url),
    workflowCreatedAt: run.createdAtMs,
    ...lastResponseView(deadLetter, redact),
    failureCallbackInfo: state && failureCallbackInfo(state, failureCallback?.response, redact),
    failureFunctionState: state,
  };
}

function failureCallbackInfo(
  state: string,
  response: FailureCallback['response'],
  redact: Redaction | undefined,
): View {
  const shown = response && responseBodyView(response.body, redact);
  return {
    state,
    responseStatus: response?.status,
    responseBody: shown && ('responseBody' in shown ? shown['responseBody'] : shown['responseBodyBase64']),
    responseHeaders: response && nonEmpty(redactHeaderMap(response.header, redact)),
  };
}

function lastResponseView({ responseStatus, responseHeader, responseBody }: DeadLetter, redact?: Redaction): View {
  return {
    responseStatus,
    responseHeader: responseHeader && nonEmpty(redactHeaderMap(responseHeader, redact)),
    ...responseBodyView(responseBody, redact),
  };
}

/** A response to a step or a failure function belongs to the run, and is redacted like the run (contract W 16.3). */
function responseBodyView(body: Uint8Array, redact: Redaction | undefined): View {
  if (body.length > 0 && redact?.body) return { responseBody: redactedText(body) };
  const shown = textOrBase64(body);
  if (!shown) return {};
  return 'text' in shown ? { responseBody: shown.text } : { responseBodyBase64: shown.base64 };
}

/** A state change, with a copy of the message's attributes. */
export function logEntryView({ atMs, state, message, detail, responseStatus }: LogEntry): View {
  const { settings } = message;
  return {
    time: atMs,
    messageId: message.id,
    state,
    ...destinationView(message),
    method: message.method,
    maxRetries: settings.maxRetries,
    header: headerView(message.header, settings),
    body: message.body.length === 0 ? undefined : logBodyView(message),
    responseStatus,
    ...detailView(detail),
    scheduleId: settings.scheduleId,
    replayOf: settings.replayOf,
    queueName: settings.queueName,
    ...callbacksView(settings, 's'),
    ...optionsView(settings),
    ...optionsView(settings, 'inLogs'),
    ...labelView(settings),
    ...flowControlView(settings.flowControl),
    ...callerIpView(message),
  };
}

const SCHEDULE_STATES: Record<TriggeredState, string> = {
  unfinished: 'IN_PROGRESS',
  delivered: 'SUCCESS',
  failed: 'FAIL',
};

/** The object of contract M 15.1. */
export function scheduleView({ schedule, lastMessages }: ScheduleView): View {
  const { id, createdAtMs, plan, state } = schedule;
  const { settings, destination } = plan;
  const lastStates = Object.fromEntries(
    lastMessages.map(({ messageId, state }) => [messageId, SCHEDULE_STATES[state]]),
  );
  return {
    scheduleId: id,
    cron: plan.cron,
    createdAt: createdAtMs,
    destination: destination.kind === 'url' ? maskPassword(destination.url) : destination.name,
    method: plan.method,
    header: headerView(plan.header, settings),
    ...bodyView(plan),
    retries: settings.maxRetries,
    delay: plan.delayMs === undefined ? undefined : Math.ceil(plan.delayMs / 1000),
    ...callbacksView(settings),
    queueName: settings.queueName,
    ...callerIpView(plan),
    ...labelView(settings),
    ...flowControlView(settings.flowControl),
    ...optionsView(settings),
    catchUp: plan.catchUp,
    overlap: plan.overlap,
    isPaused: state.isPaused,
    nextScheduleTime: state.nextAtMs,
    lastScheduleTime: state.lastTrigger?.atMs,
    lastScheduleStates: state.lastTrigger && lastStates,
    error: state.error,
  };
}

function optionsView(settings: MessageSettings, nameMember: 'as' | 'inLogs' = 'as'): View {
  const view: View = {};
  for (const { setting, ...option } of SHOWN_OPTIONS) {
    const name = option[nameMember];
    if (name !== undefined) view[name] = settings[setting];
  }
  return view;
}

function destinationView({ url, settings }: Message): View {
  return { url: maskPassword(url), topicName: settings.topicName, endpointName: settings.endpointName };
}

function headerView(header: HeaderMap, settings: MessageSettings): HeaderMap | undefined {
  return nonEmpty(redactHeaderMap(header, settings.redact));
}

/**
 * `suffix`: log entries have `s` at the end of the names of header members. The header redaction of the message applies
 * to its callbacks too, in addition to the callbacks' own redaction (contract M 19.3).
 */
function callbacksView(settings: MessageSettings, suffix: '' | 's' = ''): View {
  const { callback, failureCallback } = settings;
  return {
    callback: callback && maskPassword(callback.url),
    [`callbackHeader${suffix}`]: callback && callbackHeaderView(callback, settings),
    failureCallback: failureCallback && maskPassword(failureCallback.url),
    [`failureCallbackHeader${suffix}`]: failureCallback && callbackHeaderView(failureCallback, settings),
  };
}

function callbackHeaderView({ header, redact }: CallbackSettings, settings: MessageSettings): HeaderMap | undefined {
  const joined = redact ? mergeRedactions(settings.redact, redact) : settings.redact;
  return nonEmpty(redactHeaderMap(header, joined));
}

export function nonEmpty(map: HeaderMap): HeaderMap | undefined {
  for (const _name in map) return map;
  return undefined;
}

function bodyView({ body, settings }: Pick<Message, 'body' | 'settings'>): View {
  if (body.length > 0 && settings.redact?.body) return { body: redactedText(body) };
  const shown = textOrBase64(body);
  if (!shown) return {};
  return 'text' in shown ? { body: shown.text } : { bodyBase64: shown.base64 };
}

/** The body of a log entry is always base64, even a redacted body. */
function logBodyView({ body, settings }: Message): string {
  return base64OfBytes(settings.redact?.body ? new TextEncoder().encode(redactedText(body)) : body);
}

function detailView(detail: LogDetail | undefined): View {
  if (!detail) return {};
  const { error, nextDeliveryTimeMs, response } = detail;
  const responseHeader = response && redactHeaderMap(response.header);
  return {
    error,
    nextDeliveryTime: nextDeliveryTimeMs,
    responseStatus: response?.status,
    responseBody: response && response.body.length > 0 ? base64OfBytes(response.body) : undefined,
    responseHeaders: responseHeader,
    responseHeader,
  };
}

function callerIpView({ callerIp }: Pick<Message, 'callerIp'>): View {
  return { callerIP: callerIp, callerIp };
}

export function labelView({ labels }: { labels?: readonly string[] | undefined }): View {
  return labels && labels.length > 0 ? { label: labels[0], labels } : {};
}

/** Only limits that the message sets are present; the period is present with every key (contract M 16.3). */
function flowControlView(flowControl: FlowControl | undefined): View {
  if (!flowControl) return {};
  const { key, parallelism, rate, periodS } = flowControl;
  return { flowControlKey: key, parallelism, rate, period: periodS };
}
