/**
 * Decides how the outcome of an attempt changes its message. All functions are pure, so that each rule of contract M 6.3,
 * 8 and 17 is a table in a test. The caller passes the time, and saves the decision and its follow-up messages in one
 * transaction.
 */

import type { HeaderMap } from '../../protocol/options/settings.ts';
import { isSuccess, redirectText } from '../../protocol/responses.ts';
import { delayMsOf, parseDelayExpression } from '../../protocol/times/delay-expression.ts';
import { defaultBackOffMs, retryAfterMs } from '../../protocol/times/retry-after.ts';
import { detectionError, hasNoFailureFunction, stepMissingError } from '../../workflow/detection.ts';
import type { Run } from '../../workflow/model.ts';
import type { RunResponse } from '../calls/message-outcomes.ts';
import type {
  Change,
  Claimed,
  DeadLetter,
  FollowUp,
  LogDetail,
  LogEvent,
  Millis,
  Outcome,
  Settlement,
} from '../model.ts';
import { callResultsOf } from '../runs/call-results.ts';
import { type CountedOutcome, callbacksOf } from './callbacks.ts';
import { explanationIn, isCodeChanged, parkedForMs } from './parking.ts';

export type Decision =
  /** `follows` is saved as `settlement.change.follows`, once each message has a key, an id and a state. */
  | {
      kind: 'settle';
      settlement: Settlement;
      follows: FollowUp[];
      failsRun?: FailedRun;
      returns?: ReturnedRun;
      /** The run that the settlement ends with success. */
      succeeds?: Run;
    }
  /** Nothing is recorded: the claim is released uncounted. */
  | { kind: 'release' };

/** The failure of the message ends its run. `runs/endings/failures.ts` decides about the run once it has been read. */
export interface FailedRun {
  ended: CountedOutcome;
  atMs: Millis;
  /** Saved instead of the change of the message if the run has already ended or continued. */
  changeIfOver: Change;
  /** The run fails only if this is still the last position of its journal; absent: always. */
  ifLastAt?: number;
}

/**
 * The response to the message contains the result of its run. After the run has been read, `runs/endings/returns.ts`
 * decides about the run.
 */
export interface ReturnedRun extends RunResponse {
  atMs: Millis;
  /** The run as the call has read it. The run may have changed since. */
  run?: Run;
}

/** A decision that is saved. */
export type SettleDecision = Extract<Decision, { kind: 'settle' }>;
type ResponseOutcome = Extract<CountedOutcome, { kind: 'responded' }>;

/**
 * Decides about a message from the outcome of its attempt. `nowMs` is the end of the attempt; `leadMs` is how far `nowMs`
 * is ahead of the wall clock, because an endpoint names times of the wall clock.
 */
export function decide(claimed: Claimed, outcome: Outcome, nowMs: Millis, leadMs: Millis = 0): Decision {
  // The clock may have been set back during the attempt, which must not reverse the order of the events.
  const atMs = Math.max(nowMs, claimed.claimedAtMs);
  switch (outcome.kind) {
    case 'responded':
      return isSuccess(outcome.status)
        ? delivered(claimed, outcome, atMs)
        : retryOrFinish(claimed, outcome, { atMs, leadMs });
    case 'unreachable':
      return retryOrFinish(claimed, outcome, { atMs, leadMs });
    case 'interrupted':
      return { kind: 'release' };
  }
}

/** Decides about the message whose response ends its run (contract K 5.1). */
export function decideEnd(
  claimed: Claimed,
  response: ResponseOutcome,
  returned: RunResponse,
  nowMs: Millis,
  run: Run | undefined,
): SettleDecision {
  const atMs = Math.max(nowMs, claimed.claimedAtMs);
  const settling = settle(claimed, response, atMs, deliveredBy(response, atMs));
  return { ...settling, returns: { ...returned, atMs, ...(run && { run }) } };
}

function deliveredBy({ status }: ResponseOutcome, atMs: Millis): Change {
  return { next: { kind: 'finished' }, events: [{ atMs, state: 'DELIVERED', responseStatus: status }] };
}

function delivered(claimed: Claimed, response: ResponseOutcome, atMs: Millis): Decision {
  const { run } = claimed.message.settings;
  const error = run && detectionError(run, response.header);
  if (error !== undefined) return toDeadLetters(claimed, response, atMs, error);
  const change = deliveredBy(response, atMs);
  // This message has no step itself: if the run has not continued after this message, the run has stopped.
  if (run?.callType === 'stepConfig' && claimed.journal) {
    const otherwise = { changeIfOver: change, ifLastAt: claimed.journal.position };
    return toDeadLetters(claimed, response, atMs, stepMissingError(), otherwise);
  }
  if (run?.callType === 'failureCall') {
    // The response of a failure function is shown with its run.
    change.events = [{ atMs, state: 'DELIVERED', detail: { response: responseOf(response) } }];
    change.failureCallback = hasNoFailureFunction(response.header) ? 'none' : 'success';
  }
  return settle(claimed, response, atMs, change);
}

/** The end of an attempt. */
interface AttemptEnd {
  atMs: Millis;
  leadMs: Millis;
}

function retryOrFinish(claimed: Claimed, failure: CountedOutcome, end: AttemptEnd): Decision {
  if (failure.kind === 'responded' && isCodeChanged(claimed, failure)) return park(claimed, failure, end.atMs);
  if (canRetry(claimed, failure)) return retry(claimed, failure, end);
  const { atMs } = end;
  switch (claimed.message.settings.run?.callType) {
    // The workflow is notified of the failure and continues (contract W 12.3).
    case 'toCallback':
      return finishAsFailed(claimed, failure, atMs, {});
    case 'failureCall':
      return finishAsFailed(claimed, failure, atMs, { failureCallback: 'fail' });
    default:
      return toDeadLetters(claimed, failure, atMs);
  }
}

function canRetry(claimed: Claimed, failure: CountedOutcome): boolean {
  if (claimed.retried >= claimed.message.settings.maxRetries) return false;
  // If HTTP cannot express a request now, it cannot express the request later either.
  if (failure.kind === 'unreachable') return failure.reason !== 'unsendable';
  return !isNonRetryable(failure.status, failure.header);
}

/**
 * Whether the endpoint forbids a retry, for which the response must have both the status and the header (contract M 8.5).
 */
function isNonRetryable(status: number, header: HeaderMap): boolean {
  if (status !== 489) return false;
  const value = header['Upstash-Nonretryable-Error'] ?? header['Waypost-Nonretryable-Error'];
  return value?.[0]?.trim().toLowerCase() === 'true';
}

function retry(claimed: Claimed, failure: CountedOutcome, { atMs, leadMs }: AttemptEnd): Decision {
  const dueAtMs = atMs + delayBeforeRetryMs(claimed, failure, atMs - leadMs);
  const error: LogEvent = {
    atMs,
    state: 'ERROR',
    detail: { ...describe(claimed, failure), nextDeliveryTimeMs: dueAtMs },
  };
  return settle(
    claimed,
    failure,
    atMs,
    {
      next: { kind: 'waiting', dueAtMs, retried: claimed.retried + 1 },
      events: [error, { atMs, state: 'RETRY', detail: { nextDeliveryTimeMs: dueAtMs } }],
    },
    cancelled(claimed, failure, atMs),
  );
}

/**
 * Parks the message. Parking does not count as a failed attempt. A retry succeeds only after other code is deployed, and
 * the run then continues.
 */
function park(claimed: Claimed, response: ResponseOutcome, atMs: Millis): Decision {
  const parkings = (claimed.parkings ?? 0) + 1;
  const dueAtMs = atMs + parkedForMs(parkings);
  const detail = { error: explanationIn(response.body), nextDeliveryTimeMs: dueAtMs, response: responseOf(response) };
  const change: Change = {
    next: { kind: 'waiting', dueAtMs, retried: claimed.retried, parkings },
    events: [{ atMs, state: 'STEP_PARKED', detail }],
  };
  return settle(claimed, response, atMs, change, cancelled(claimed, response, atMs));
}

/**
 * The delay before the retry: from the response if it names a delay, else from the publisher's expression if there is
 * one, else the default backoff (contract M 8.2 to 8.4).
 */
function delayBeforeRetryMs(claimed: Claimed, failure: CountedOutcome, wallMs: Millis): Millis {
  const requestedMs = failure.kind === 'responded' ? retryAfterMs(failure.header, wallMs) : undefined;
  if (requestedMs !== undefined) return requestedMs;
  const text = claimed.message.settings.retryDelayExpression;
  const computed = text === undefined ? undefined : delayMsOf(parseDelayExpression(text), claimed.retried);
  return computed ?? defaultBackOffMs(claimed.retried + 1);
}

/**
 * Makes the message dead. A message of a run also ends its run. `error`: why a response with a successful status counts
 * as failed.
 */
function toDeadLetters(
  claimed: Claimed,
  failure: CountedOutcome,
  atMs: Millis,
  error?: string,
  otherwise: Pick<FailedRun, 'changeIfOver' | 'ifLastAt'> = { changeIfOver: cancelled(claimed, failure, atMs) },
): Decision {
  const change: Change = {
    next: { kind: 'finished' },
    events: lastEvents(claimed, failure, atMs, 'FAILED', error),
    deadLetter: deadLetterOf(claimed, failure, atMs),
  };
  if (!claimed.message.settings.run) return settle(claimed, failure, atMs, change);
  const settling = settle(claimed, failure, atMs, change, otherwise.changeIfOver);
  return { ...settling, failsRun: { ended: failure, atMs, ...otherwise } };
}

/** Finishes the message as failed, but without a DLQ entry. */
function finishAsFailed(
  claimed: Claimed,
  failure: CountedOutcome,
  atMs: Millis,
  more: Pick<Change, 'failureCallback'>,
): Decision {
  const change: Change = { next: { kind: 'finished' }, events: lastEvents(claimed, failure, atMs, 'FAILED'), ...more };
  return settle(claimed, failure, atMs, change, cancelled(claimed, failure, atMs));
}

/** The change for a message that was cancelled during an attempt that failed. */
function cancelled(claimed: Claimed, failure: CountedOutcome, atMs: Millis): Change {
  return { next: { kind: 'finished' }, events: lastEvents(claimed, failure, atMs, 'CANCELED') };
}

/**
 * The events of the last failed attempt and of the end of the message. `error`: a text to use instead of the description
 * of the failure.
 */
function lastEvents(
  claimed: Claimed,
  failure: CountedOutcome,
  atMs: Millis,
  end: 'FAILED' | 'CANCELED',
  error?: string,
): LogEvent[] {
  const detail = { ...describe(claimed, failure), ...(error !== undefined && { error }) };
  return [
    { atMs, state: 'ERROR', detail },
    { atMs, state: end },
  ];
}

function deadLetterOf(claimed: Claimed, failure: CountedOutcome, failedAtMs: Millis): DeadLetter {
  const common = { failedAtMs, retried: claimed.retried };
  if (failure.kind === 'unreachable') {
    return { ...common, responseStatus: 0, responseBody: new TextEncoder().encode(failure.error) };
  }
  return { ...common, responseStatus: failure.status, responseHeader: failure.header, responseBody: failure.body };
}

function describe({ message }: Claimed, failure: CountedOutcome): LogDetail {
  if (failure.kind === 'unreachable') return { error: failure.error };
  const { status, body, isCut } = failure;
  const cut = isCut ? `; of its body only the first ${body.length} bytes are kept` : '';
  const redirect = redirectText(failure, message.url, message.settings.redact);
  return { error: `${respondedWith(status)}${redirect}${cut}`, response: responseOf(failure) };
}

/**
 * The error text for a response that is not 2xx. For a redirect, decide() appends the address in `Location`, without its query.
 * Remedy: read the body of the response in the log, the DLQ or the console, and the log of the app. 401 and 403 often mean that
 * the app rejects the [signature](receiving.md#when-a-signature-is-refused); 404 and 405 mean a wrong path or method. 3xx means
 * that the endpoint has another address, often with or without `www.` or a trailing slash, or with https: publish to the address
 * in the error, because redirects are not followed. To prevent retries that cannot succeed, respond with 489
 * ([receiving](receiving.md)).
 */
export function respondedWith(status: number): string {
  return `the endpoint responded with status ${status}`;
}

function responseOf({ status, header, body }: ResponseOutcome): NonNullable<LogDetail['response']> {
  return { status, header, body };
}

/**
 * Makes the decision to settle. `follows` belongs to `change` only: the change of a cancelled message has no follow-up
 * messages (contract M 6.3.7).
 */
function settle(
  claimed: Claimed,
  ended: CountedOutcome,
  atMs: Millis,
  change: Change,
  changeIfCancelRequested?: Change,
): SettleDecision {
  const { key, projectId } = claimed.message;
  const settlement: Settlement = { key, projectId, claimToken: claimed.claimToken, change };
  if (claimed.isAlone) settlement.isAlone = true;
  if (changeIfCancelRequested) settlement.changeIfCancelRequested = changeIfCancelRequested;
  return { kind: 'settle', settlement, follows: followsOf(claimed, ended, change, atMs) };
}

/** The follow-up messages. In a run, only a finished `context.call` has a follow-up message: the result of the call. */
function followsOf(claimed: Claimed, ended: CountedOutcome, change: Change, atMs: Millis): FollowUp[] {
  const { run } = claimed.message.settings;
  if (!run) return callbacksOf(claimed, ended, change, atMs);
  const isEnd = change.next.kind === 'finished' && run.callType === 'toCallback';
  return isEnd ? callResultsOf(claimed, ended, atMs) : [];
}
