/**
 * The callback messages that follow from an attempt (contract M 9). Like `decide`, these functions are pure. A callback
 * is an ordinary message, with its own attempts, logs and DLQ entry.
 */
import { type CallbackReport, encodeCallbackPayload } from '../../protocol/callback-payload.ts';
import { dlqIdOf } from '../../protocol/cursor.ts';
import { newHeaderMap } from '../../protocol/headers.ts';
import type {
  CallbackSettings,
  HeaderMap,
  MessageSettings,
  Redaction,
  TraceContext,
} from '../../protocol/options/settings.ts';
import { mergeRedactions } from '../../protocol/redaction.ts';
import type { Change, Claimed, FollowUp, Message, Millis, Outcome } from '../model.ts';
import { followUpOf } from './follow-up.ts';

/** The outcome of an attempt that counts. */
export type CountedOutcome = Exclude<Outcome, { kind: 'interrupted' }>;

/**
 * The callback after each attempt, and the failure callback if `change` makes the message dead. `atMs`: when the attempt
 * ended. An attempt that was rejected before anything was sent counts, too.
 */
export function callbacksOf(claimed: Claimed, ended: CountedOutcome, change: Change, atMs: Millis): FollowUp[] {
  const { message } = claimed;
  const { callback, failureCallback } = message.settings;
  const { trace = message.settings.trace } = claimed;
  const { deadLetter } = change;
  const isFailureReported = failureCallback !== undefined && deadLetter !== undefined;
  if (!callback && !isFailureReported) return [];
  const report = reportOf(claimed, ended);
  const follows: FollowUp[] = [];
  if (callback) follows.push(callbackOf(message, trace, callback, report, atMs));
  if (isFailureReported) {
    const dlqId = dlqIdOf(deadLetter.failedAtMs, message.key);
    follows.push(callbackOf(message, trace, failureCallback, { ...report, dlqId }, atMs));
  }
  return follows;
}

function callbackOf(
  source: Message,
  trace: TraceContext | undefined,
  callback: CallbackSettings,
  report: CallbackReport,
  atMs: Millis,
): FollowUp {
  const { url, method } = callback;
  const header = withContentType(callback.header);
  const settings = settingsOf(source.settings, callback);
  if (trace) settings.trace = trace;
  return followUpOf(source, { url, method, header, body: encodeCallbackPayload(report), settings }, atMs);
}

/**
 * Returns the headers with `Content-Type: application/json`, unless they forward another content type to the callback.
 */
export function withContentType(header: HeaderMap): HeaderMap {
  const map = Object.assign(newHeaderMap(), header);
  map['Content-Type'] ??= ['application/json'];
  return map;
}

/**
 * The settings of a callback. In addition to the trace, a callback inherits only the dialect, the number of retries and
 * the redaction of its source (contract M 9.4, 19.4).
 */
function settingsOf(source: MessageSettings, callback: CallbackSettings): MessageSettings {
  const { url: _url, method: _method, header: _header, features: _features, ...own } = callback;
  const settings: MessageSettings = {
    ...own,
    dialect: source.dialect,
    maxRetries: own.maxRetries ?? source.maxRetries,
  };
  const inherited = inheritedRedaction(source.redact);
  if (inherited) settings.redact = mergeRedactions(own.redact, inherited);
  return settings;
}

/**
 * The redaction that a callback inherits. Its payload repeats the body and the headers of the source, so the payload is
 * redacted if the body or the headers are redacted in the source. The headers that are redacted in the source are also
 * redacted in the callback, because views of the callback must not show them.
 */
function inheritedRedaction(redact: Redaction | undefined): Redaction | undefined {
  if (!redact || (!redact.body && redact.headers.length === 0)) return undefined;
  return { body: true, headers: redact.headers };
}

/** The report of an attempt that a callback carries. */
export function reportOf(
  { message, retried }: Pick<Claimed, 'message' | 'retried'>,
  ended: CountedOutcome,
): CallbackReport {
  const { settings } = message;
  return {
    ...responseOf(ended),
    retried,
    maxRetries: settings.maxRetries,
    sourceMessageId: message.id,
    topicName: settings.topicName,
    endpointName: settings.endpointName,
    url: message.url,
    method: message.method,
    sourceHeader: message.header,
    sourceBody: message.body,
    notBefore: message.notBeforeMs,
    createdAt: message.createdAtMs,
    scheduleId: settings.scheduleId,
    callerIP: message.callerIp,
  };
}

function responseOf(ended: CountedOutcome): Pick<CallbackReport, 'status' | 'header' | 'body'> {
  if (ended.kind === 'unreachable') return { status: 0, header: {}, body: new TextEncoder().encode(ended.error) };
  return { status: ended.status, header: ended.header, body: ended.body };
}
