/** Rebuilds the request that creates a schedule. The API shows all settings of a schedule, except redacted values. */
import { headersOf, type RequestSpec } from '../../api/as-code.ts';
import type { ResponseOf } from '../../api/client.ts';
import { isHidden } from '../../api/hidden.ts';

type Schedule = ResponseOf<'getSchedule'>;
type HeaderMap = NonNullable<Schedule['header']>;

/** Whether a value is hidden, so that the schedule cannot be sent again. */
export function isRedacted(schedule: Schedule): boolean {
  const { header = {}, callbackHeader = {}, failureCallbackHeader = {} } = schedule;
  const { body, destination, callback, failureCallback } = schedule;
  const values = [header, callbackHeader, failureCallbackHeader].flatMap((map) => Object.values(map).flat());
  return [...values, body, destination, callback, failureCallback].some(
    (value) => value !== undefined && isHidden(value),
  );
}

/** The message that the schedule publishes. */
function messageOf(schedule: Schedule): RequestSpec {
  const { destination, method, header = {}, retries, timeout, delay, queueName, labels } = schedule;
  const { retryDelayExpression, flowControlKey, parallelism, rate, period, callback, failureCallback } = schedule;
  return {
    destination,
    method,
    headers: Object.entries(header).map(([name, values]) => [name, values.join(', ')] as const),
    retries,
    retryDelay: retryDelayExpression,
    timeoutS: timeout === undefined ? undefined : Math.ceil(timeout / 1_000),
    delay: delay === undefined ? undefined : `${delay}s`,
    queueName,
    labels,
    callback,
    failureCallback,
    flowControl: flowControlKey === undefined ? undefined : { key: flowControlKey, parallelism, rate, periodS: period },
  };
}

/** The headers that publish the message now. */
export function messageHeaders(schedule: Schedule): Record<string, string> {
  return { ...headersOf(messageOf(schedule)), ...callbackHeaders(schedule) };
}

/** The headers that create the schedule. */
export function scheduleHeaders(schedule: Schedule): Record<string, string> {
  const { cron, scheduleId, catchUp, overlap } = schedule;
  return {
    ...headersOf({ ...messageOf(schedule), cron, scheduleId }),
    ...callbackHeaders(schedule),
    ...(catchUp && { 'Waypost-Schedule-Catch-Up': catchUp }),
    ...(overlap && { 'Waypost-Schedule-Overlap': overlap }),
  };
}

function callbackHeaders({ callbackHeader = {}, failureCallbackHeader = {} }: Schedule): Record<string, string> {
  const forwarded = (kind: string, map: HeaderMap): [string, string][] =>
    Object.entries(map).map(([name, values]) => [`Upstash-${kind}-Forward-${name}`, values.join(', ')]);
  return Object.fromEntries([
    ...forwarded('Callback', callbackHeader),
    ...forwarded('Failure-Callback', failureCallbackHeader),
  ]);
}

export function bodyOf({ body, bodyBase64 }: Schedule): string | Uint8Array<ArrayBuffer> {
  if (bodyBase64 === undefined) return body ?? '';
  return Uint8Array.from(atob(bodyBase64), (character) => character.charCodeAt(0));
}
