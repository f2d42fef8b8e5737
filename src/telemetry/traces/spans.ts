/**
 * Which spans tell of a message, an attempt, a run? Their times are those that the store keeps or that the hook brings, their
 * ids follow from what they tell of (`engine/spans.ts`), and their attributes have the names of OpenTelemetry's conventions
 * for messaging and HTTP where there is one. As in the log, only the host of a URL is recorded.
 */
import type { Change, Claimed, Message, Millis, NewMessage, Outcome } from '../../engine/model.ts';
import type { EndedRun } from '../../engine/ports.ts';
import { type SpanPlace, spanOfAttempt, spanOfMessage, spanOfRun, spanOfWait } from '../../engine/spans.ts';
import { memo } from '../../protocol/memo.ts';
import { isSuccess } from '../../protocol/responses.ts';
import { stepNameOf } from '../../workflow/steps.ts';

/** Numbers are whole and not negative. */
export type Attributes = Record<string, string | number>;

export interface Span extends SpanPlace {
  name: string;
  kind: 'internal' | 'client' | 'producer';
  startMs: Millis;
  endMs: Millis;
  attributes: Attributes;
  /** Why what it tells of failed. */
  error?: string;
}

/** Shorter waits are mostly those for a commit, which the publish has in it. */
const WAIT_MS_MIN = 100;

/** The publish of a message that is in no run, or the callback that it is: from its making to its commit. */
export function publishSpan({ message, isFollowUp }: NewMessage, atMs: Millis): Span | undefined {
  const { settings, createdAtMs, body } = message;
  if (settings.run) return undefined; // its step gets a span when it ends
  const place = spanOfMessage(message);
  if (!place) return undefined;
  const { host } = hostOf(message.origin);
  const name = isFollowUp ? 'callback' : 'publish';
  return {
    ...place,
    name: `${name} ${host}`,
    kind: 'producer',
    startMs: createdAtMs,
    endMs: Math.max(createdAtMs, atMs),
    attributes: {
      ...aboutMessage(message),
      'messaging.operation.name': name,
      'messaging.operation.type': 'send',
      'messaging.destination.name': settings.queueName ?? settings.topicName ?? host,
      'messaging.message.body.size': body.length,
      ...(settings.scheduleId !== undefined && { 'waypost.schedule.id': settings.scheduleId }),
    },
  };
}

/** The attempt, and the wait before it if that was one. */
export function attemptSpans(claimed: Claimed, outcome: Outcome, endedAtMs: Millis): Span[] {
  const { message, retried, durationMs = 0 } = claimed;
  const place = outcome.kind === 'interrupted' ? undefined : spanOfAttempt(claimed); // it will be made again
  if (!place) return [];
  const { host, port } = hostOf(message.origin);
  const startMs = endedAtMs - durationMs;
  const attempt: Span = {
    ...place,
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
  if (outcome.kind === 'answered') attempt.attributes['http.response.status_code'] = outcome.status;
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

/** What is over, or begins, with an outcome that was saved: a step, the run that it ends, the wait for a retry. */
export function settleSpans(claimed: Claimed, change: Change, atMs: Millis): Span[] {
  const { message } = claimed;
  const { next, ending } = change;
  const { run, trace } = message.settings;
  if (next.kind === 'waiting') {
    const place = spanOfWait(claimed, 'after');
    return place ? [waitSpan(place, 'retry', atMs, Math.max(atMs, next.dueAtMs))] : [];
  }
  if (!run) return [];
  const step = stepSpan(message, change, atMs);
  const hasFailed = ending?.state === 'RUN_FAILED';
  const failed = hasFailed ? runSpan({ ...run, config: { ...(trace && { trace }) } }, 'RUN_FAILED', atMs) : undefined;
  return [step, failed].filter((span) => span !== undefined);
}

/** A run, from its trigger to its end. */
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
  const place = spanOfRun({ id, createdAtMs }, config.trace);
  if (!place) return undefined;
  return {
    ...place,
    name: `run ${URL.canParse(url) ? new URL(url).host : ''}`.trimEnd(),
    kind: 'internal',
    startMs: createdAtMs,
    endMs: Math.max(createdAtMs, atMs),
    attributes: { 'messaging.system': 'waypost', 'waypost.run.id': id, 'waypost.run.state': state },
    ...(state === 'RUN_FAILED' && { error: 'a message of the run is dead' }),
  };
}

/** The wait of a run for an event, from its registration on. */
export function waitForEventSpan(record: Message, by: 'event' | 'deadline', atMs: Millis): Span | undefined {
  const { run, wait } = record.settings;
  const place = spanOfMessage(record);
  if (!run || !wait || !place) return undefined;
  return {
    ...place,
    name: 'wait-for-event',
    kind: 'internal',
    startMs: record.createdAtMs,
    endMs: Math.max(record.createdAtMs, atMs),
    attributes: { 'waypost.run.id': run.id, 'waypost.event.id': wait.eventId, 'waypost.event.ended_by': by },
  };
}

/** A message of a run, from when its step was published until it was delivered or had failed. */
function stepSpan(message: Message, { deadLetter, ending }: Change, atMs: Millis): Span | undefined {
  const { run } = message.settings;
  const place = spanOfMessage(message);
  if (!run || !place) return undefined;
  const name = message.key === run.key ? 'init' : (stepNameOf(message) ?? run.callType);
  return {
    ...place,
    name: `step ${name}`,
    kind: 'internal',
    startMs: message.createdAtMs,
    endMs: Math.max(message.createdAtMs, atMs),
    attributes: { ...aboutMessage(message), 'waypost.step.name': name, 'waypost.step.call_type': run.callType },
    ...((deadLetter || ending?.state === 'RUN_FAILED') && { error: 'it is dead' }),
  };
}

function waitSpan(place: SpanPlace, reason: 'delay' | 'turn' | 'retry', startMs: Millis, endMs: Millis): Span {
  return { ...place, name: 'wait', kind: 'internal', startMs, endMs, attributes: { 'waypost.wait.reason': reason } };
}

function aboutMessage({ id, settings: { run, labels } }: Message): Attributes {
  return {
    'messaging.system': 'waypost',
    'messaging.message.id': id,
    ...(run && { 'waypost.run.id': run.id }),
    ...(labels && { 'waypost.labels': labels.join(',') }),
  };
}

/** The class of a failure; `undefined`: it was none. */
function failureOf(outcome: Outcome): string | undefined {
  if (outcome.kind === 'answered') return isSuccess(outcome.status) ? undefined : String(outcome.status);
  return outcome.kind === 'unreachable' ? outcome.reason : undefined;
}

const hostOf = memo((origin) => {
  const { hostname: host, port, protocol } = new URL(origin);
  return { host, port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port) };
});
