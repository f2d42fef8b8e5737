/**
 * Builds the spans of messages, attempts and runs. The times of spans come from the store or the observer's events, and
 * the ids are derived from the ids of the message or run (`engine/spans.ts`). Attributes follow OpenTelemetry's
 * conventions for messaging and HTTP where these conventions define a name. As in the log, only the host of a URL is
 * recorded.
 */
import type { Change, Claimed, Message, Millis, NewMessage, Outcome } from '../../engine/model.ts';
import type { EndedRun } from '../../engine/ports.ts';
import { type SpanIds, spanOfAttempt, spanOfMessage, spanOfRun, spanOfWait } from '../../engine/spans.ts';
import { memo } from '../../protocol/memo.ts';
import { isSuccess } from '../../protocol/responses.ts';
import { stepNameOf } from '../../workflow/steps.ts';

/** Numbers must be non-negative integers. */
export type Attributes = Record<string, string | number>;

export interface Span extends SpanIds {
  name: string;
  kind: 'internal' | 'client' | 'producer';
  startMs: Millis;
  endMs: Millis;
  attributes: Attributes;
  /** The reason of the failure. Absent if the operation succeeded. */
  error?: string;
}

/** A shorter wait gets no span: most of this time is the wait for a commit, which the publish span includes. */
const WAIT_MS_MIN = 100;

/** The publish of a message or callback outside of runs, from its creation to its commit. */
export function publishSpan({ message, isFollowUp }: NewMessage, atMs: Millis): Span | undefined {
  const { settings, createdAtMs, body } = message;
  if (settings.run) return undefined; // a step gets its span when it ends
  const ids = spanOfMessage(message);
  if (!ids) return undefined;
  const { host } = hostOf(message.origin);
  const name = isFollowUp ? 'callback' : 'publish';
  return {
    ...ids,
    name: `${name} ${host}`,
    kind: 'producer',
    startMs: createdAtMs,
    endMs: Math.max(createdAtMs, atMs),
    attributes: {
      ...messageAttributes(message),
      'messaging.operation.name': name,
      'messaging.operation.type': 'send',
      'messaging.destination.name': settings.queueName ?? settings.topicName ?? host,
      'messaging.message.body.size': body.length,
      ...(settings.scheduleId !== undefined && { 'waypost.schedule.id': settings.scheduleId }),
    },
  };
}

/** The span of an attempt. If a first attempt started late, the span of the wait comes first. */
export function attemptSpans(claimed: Claimed, outcome: Outcome, endedAtMs: Millis): Span[] {
  const { message, retried, durationMs = 0 } = claimed;
  const ids = outcome.kind === 'interrupted' ? undefined : spanOfAttempt(claimed); // an interrupted attempt is repeated
  if (!ids) return [];
  const { host, port } = hostOf(message.origin);
  const startMs = endedAtMs - durationMs;
  const attempt: Span = {
    ...ids,
    name: `attempt ${host}`,
    kind: 'client',
    startMs,
    endMs: endedAtMs,
    attributes: {
      'messaging.message.id': message.id,
      'http.request.method': message.method,
      'server.address': host,
      'server.port': port,
      ...(retried > 0 && { 'http.request.resend_count': retried }),
    },
  };
  if (outcome.kind === 'responded') attempt.attributes['http.response.status_code'] = outcome.status;
  const failure = failureOf(outcome);
  if (failure !== undefined) {
    attempt.attributes['error.type'] = failure;
    attempt.error = failure;
  }
  const waitedMs = startMs - message.createdAtMs;
  const wait = retried === 0 && waitedMs >= WAIT_MS_MIN ? spanOfWait(claimed, 'before') : undefined;
  if (!wait) return [attempt];
  const isPlanned = message.notBeforeMs > message.createdAtMs;
  return [waitSpan(wait, isPlanned ? 'delay' : 'turn', message.createdAtMs, startMs), attempt];
}

/** The spans that result from a saved outcome: the ended step, the failed run, or the wait for a retry. */
export function settleSpans(claimed: Claimed, change: Change, atMs: Millis): Span[] {
  const { message } = claimed;
  const { next, ending } = change;
  const { run, trace } = message.settings;
  if (next.kind === 'waiting') {
    const ids = spanOfWait(claimed, 'after');
    return ids ? [waitSpan(ids, 'retry', atMs, Math.max(atMs, next.dueAtMs))] : [];
  }
  if (!run) return [];
  const step = stepSpan(message, change, atMs);
  const hasFailed = ending?.state === 'RUN_FAILED';
  const failed = hasFailed ? runSpan({ ...run, config: { ...(trace && { trace }) } }, 'RUN_FAILED', atMs) : undefined;
  return [step, failed].filter((span) => span !== undefined);
}

/** The span of a run, from its trigger to its end. */
export function runSpan(
  {
    id,
    createdAtMs,
    url,
    config,
  }: Pick<EndedRun, 'id' | 'createdAtMs' | 'url'> & { config: Pick<EndedRun['config'], 'trace'> },
  state: 'RUN_SUCCESS' | 'RUN_CANCELED' | 'RUN_FAILED',
  atMs: Millis,
): Span | undefined {
  const ids = spanOfRun({ id, createdAtMs }, config.trace);
  if (!ids) return undefined;
  return {
    ...ids,
    name: `run ${URL.canParse(url) ? new URL(url).host : ''}`.trimEnd(),
    kind: 'internal',
    startMs: createdAtMs,
    endMs: Math.max(createdAtMs, atMs),
    attributes: { 'messaging.system': 'waypost', 'waypost.run.id': id, 'waypost.run.state': state },
    ...(state === 'RUN_FAILED' && { error: 'a message of the run is dead' }),
  };
}

/** The wait of a run for an event, from its registration to the event or the deadline. */
export function waitForEventSpan(record: Message, by: 'event' | 'deadline', atMs: Millis): Span | undefined {
  const { run, wait } = record.settings;
  const ids = spanOfMessage(record);
  if (!run || !wait || !ids) return undefined;
  return {
    ...ids,
    name: 'wait-for-event',
    kind: 'internal',
    startMs: record.createdAtMs,
    endMs: Math.max(record.createdAtMs, atMs),
    attributes: { 'waypost.run.id': run.id, 'waypost.event.id': wait.eventId, 'waypost.event.ended_by': by },
  };
}

/** The span of a step, from the publish of the step's message until the message was delivered or died. */
function stepSpan(message: Message, { deadLetter, ending }: Change, atMs: Millis): Span | undefined {
  const { run } = message.settings;
  const ids = spanOfMessage(message);
  if (!run || !ids) return undefined;
  const name = message.key === run.key ? 'init' : (stepNameOf(message) ?? run.callType);
  return {
    ...ids,
    name: `step ${name}`,
    kind: 'internal',
    startMs: message.createdAtMs,
    endMs: Math.max(message.createdAtMs, atMs),
    attributes: { ...messageAttributes(message), 'waypost.step.name': name, 'waypost.step.call_type': run.callType },
    ...((deadLetter || ending?.state === 'RUN_FAILED') && { error: 'it is dead' }),
  };
}

function waitSpan(ids: SpanIds, reason: 'delay' | 'turn' | 'retry', startMs: Millis, endMs: Millis): Span {
  return { ...ids, name: 'wait', kind: 'internal', startMs, endMs, attributes: { 'waypost.wait.reason': reason } };
}

function messageAttributes({ id, settings: { run, labels } }: Message): Attributes {
  return {
    'messaging.system': 'waypost',
    'messaging.message.id': id,
    ...(run && { 'waypost.run.id': run.id }),
    ...(labels && { 'waypost.labels': labels.join(',') }),
  };
}

/** The class of a failure. Undefined if the attempt did not fail. */
function failureOf(outcome: Outcome): string | undefined {
  if (outcome.kind === 'responded') return isSuccess(outcome.status) ? undefined : String(outcome.status);
  return outcome.kind === 'unreachable' ? outcome.reason : undefined;
}

const hostOf = memo((origin) => {
  const { hostname: host, port, protocol } = new URL(origin);
  return { host, port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port) };
});
