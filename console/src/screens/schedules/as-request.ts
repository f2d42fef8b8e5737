/** A schedule as the request that makes it again: what it shows is all that it has, unless a part is redacted. */
import type { AnswerOf } from '../../api/client.ts';

type Schedule = AnswerOf<'getSchedule'>;

export interface ScheduleRequest {
  destination: string;
  headers: Record<string, string>;
  body: string | Uint8Array<ArrayBuffer>;
}

/** True when a value is shown only as its hash: it cannot be sent again. */
export function isRedacted({ header = {}, callbackHeader = {}, failureCallbackHeader = {}, body }: Schedule): boolean {
  const values = [header, callbackHeader, failureCallbackHeader].flatMap((map) => Object.values(map).flat());
  return [...values, body].some((value) => value !== undefined && /^REDACTED:[0-9a-f]{64}$/.test(value));
}

export function asRequest(schedule: Schedule): ScheduleRequest {
  const { destination, method, header, retries, timeout, delay, queueName, labels, retryDelayExpression } = schedule;
  const { flowControlKey, parallelism, rate, period, callback, failureCallback } = schedule;
  const limits = Object.entries({ parallelism, rate, period }).filter(([, value]) => value !== undefined);
  const options: Record<string, string | number | undefined> = {
    Method: method,
    Retries: retries,
    'Retry-Delay': retryDelayExpression,
    Timeout: timeout === undefined ? undefined : `${Math.ceil(timeout / 1_000)}s`,
    Delay: delay === undefined ? undefined : `${delay}s`,
    'Queue-Name': queueName,
    Label: labels?.join(','),
    'Flow-Control-Key': flowControlKey,
    'Flow-Control-Value': limits.length === 0 ? undefined : limits.map(([name, value]) => `${name}=${value}`).join(','),
    Callback: callback,
    'Failure-Callback': failureCallback,
    ...forwarded('Forward-', header),
    ...forwarded('Callback-Forward-', schedule.callbackHeader),
    ...forwarded('Failure-Callback-Forward-', schedule.failureCallbackHeader),
  };
  const headers = Object.entries(options).flatMap(([name, value]) =>
    value === undefined ? [] : [[`Upstash-${name}`, String(value)] as const],
  );
  return { destination, headers: Object.fromEntries(headers), body: bodyOf(schedule) };
}

/** What makes it a schedule and no message. */
export function scheduleHeaders({ scheduleId, cron, catchUp, overlap }: Schedule): Record<string, string> {
  return {
    'Upstash-Schedule-Id': scheduleId,
    'Upstash-Cron': cron,
    ...(catchUp && { 'Waypost-Schedule-Catch-Up': catchUp }),
    ...(overlap && { 'Waypost-Schedule-Overlap': overlap }),
  };
}

function forwarded(prefix: string, map: Schedule['header'] = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(map).map(([name, values]) => [`${prefix}${name}`, values.join(', ')]));
}

function bodyOf({ body, bodyBase64 }: Schedule): string | Uint8Array<ArrayBuffer> {
  if (bodyBase64 === undefined) return body ?? '';
  return Uint8Array.from(atob(bodyBase64), (character) => character.charCodeAt(0));
}
