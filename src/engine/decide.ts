/**
 * What a finished attempt makes of its message: pure, so that every rule of messaging.md 6.3, 8 and 17 is a table
 * in a test. The caller passes the time and saves what comes back, with what follows from it, in one transaction.
 */
import { defaultBackOffMs } from '../protocol/back-off.ts';
import { parseDelayExpression, retryDelayMs } from '../protocol/delay-expression.ts';
import { retryAfterMs } from '../protocol/retry-after.ts';
import type { HeaderMap } from '../protocol/settings.ts';
import { callbacksOf, type Ended } from './callbacks.ts';
import type { Burial, Change, Claimed, FollowUp, LogDetail, LogEvent, Millis, Outcome, Settlement } from './model.ts';

export type Decision =
  /** `follows` is to be saved as `settlement.change.follows`, once each has a key, an id and a place. */
  | { kind: 'settle'; settlement: Settlement; follows: FollowUp[] }
  /** Nothing is recorded: the attempt is as if it had not been made. */
  | { kind: 'release' };

/** Decides what `outcome` makes of the message. `nowMs` is the end of the attempt. */
export function decide(claimed: Claimed, outcome: Outcome, nowMs: Millis): Decision {
  // A clock that was set back meanwhile must not turn the message's history around.
  const atMs = Math.max(nowMs, claimed.claimedAtMs);
  switch (outcome.kind) {
    case 'answered':
      return isSuccess(outcome.status) ? delivered(claimed, outcome, atMs) : retryOrBury(claimed, outcome, atMs);
    case 'unreachable':
      return retryOrBury(claimed, outcome, atMs);
    case 'interrupted':
      return { kind: 'release' };
  }
}

function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299;
}

function delivered(claimed: Claimed, answer: Ended, atMs: Millis): Decision {
  return settle(claimed, answer, atMs, { next: { kind: 'finished' }, events: [{ atMs, state: 'DELIVERED' }] });
}

function retryOrBury(claimed: Claimed, failure: Ended, atMs: Millis): Decision {
  return canRetry(claimed, failure) ? retry(claimed, failure, atMs) : bury(claimed, failure, atMs);
}

function canRetry(claimed: Claimed, failure: Ended): boolean {
  if (claimed.retried >= claimed.message.settings.maxRetries) return false;
  // What cannot be expressed in HTTP today cannot be tomorrow.
  if (failure.kind === 'unreachable') return failure.reason !== 'unsendable';
  return !isNonRetryable(failure.status, failure.header);
}

/** Both together, or it is an ordinary failure (messaging.md 8.5). */
function isNonRetryable(status: number, header: HeaderMap): boolean {
  if (status !== 489) return false;
  const value = header['Upstash-Nonretryable-Error'] ?? header['Waypost-Nonretryable-Error'];
  return value?.[0]?.trim().toLowerCase() === 'true';
}

function retry(claimed: Claimed, failure: Ended, atMs: Millis): Decision {
  const dueAtMs = atMs + delayBeforeRetryMs(claimed, failure, atMs);
  const error: LogEvent = { atMs, state: 'ERROR', detail: { ...describe(failure), nextDeliveryTimeMs: dueAtMs } };
  return settle(
    claimed,
    failure,
    atMs,
    {
      next: { kind: 'waiting', dueAtMs, retried: claimed.retried + 1 },
      events: [error, { atMs, state: 'RETRY', detail: { nextDeliveryTimeMs: dueAtMs } }],
    },
    {
      next: { kind: 'finished' },
      events: [
        { atMs, state: 'ERROR', detail: describe(failure) },
        { atMs, state: 'CANCELED' },
      ],
    },
  );
}

/** The answer's wish first, then the publisher's expression, then the default back-off (messaging.md 8.2 to 8.4). */
function delayBeforeRetryMs(claimed: Claimed, failure: Ended, nowMs: Millis): Millis {
  const wished = failure.kind === 'answered' ? retryAfterMs(failure.header, nowMs) : undefined;
  if (wished !== undefined) return wished;
  const text = claimed.message.settings.retryDelayExpression;
  const computed = text === undefined ? undefined : retryDelayMs(parseDelayExpression(text), claimed.retried);
  return computed ?? defaultBackOffMs(claimed.retried + 1);
}

function bury(claimed: Claimed, failure: Ended, atMs: Millis): Decision {
  return settle(claimed, failure, atMs, {
    next: { kind: 'finished' },
    events: [
      { atMs, state: 'ERROR', detail: describe(failure) },
      { atMs, state: 'FAILED' },
    ],
    burial: burialOf(claimed, failure, atMs),
  });
}

function burialOf(claimed: Claimed, failure: Ended, failedAtMs: Millis): Burial {
  const common = { failedAtMs, retried: claimed.retried };
  if (failure.kind === 'unreachable') {
    return { ...common, responseStatus: 0, responseBody: new TextEncoder().encode(failure.error) };
  }
  return { ...common, responseStatus: failure.status, responseHeader: failure.header, responseBody: failure.body };
}

function describe(failure: Ended): LogDetail {
  if (failure.kind === 'unreachable') return { error: failure.error };
  const { status, header, body } = failure;
  return { error: `the endpoint answered with status ${status}`, response: { status, header, body } };
}

/** Nothing follows from a change that is made because of a cancel (messaging.md 6.3, row 7). */
function settle(
  claimed: Claimed,
  ended: Ended,
  atMs: Millis,
  change: Change,
  changeIfCancelRequested?: Change,
): Decision {
  const { key, projectId } = claimed.message;
  const settlement: Settlement = { key, projectId, claimToken: claimed.claimToken, change };
  if (changeIfCancelRequested) settlement.changeIfCancelRequested = changeIfCancelRequested;
  return { kind: 'settle', settlement, follows: callbacksOf(claimed, ended, change, atMs) };
}
