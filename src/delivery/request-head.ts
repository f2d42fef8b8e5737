/** Which headers does a delivery carry? (contract M 7.2, W 9) */
import type { Claimed } from '../engine/model.ts';
import { deliveryHeaderName, userAgent } from '../protocol/dialect.ts';
import type { Dialect } from '../protocol/settings.ts';
import { addWorkflowHeaders, isLeftOut } from './workflow-head.ts';

/** Header names, joined once and not for each attempt. */
interface HeadNames {
  userAgent: string;
  signature: string;
  messageId: string;
  retried: string;
  topicName: string;
  scheduleId: string;
  callerIp: string;
  region: string;
}

const NAMES: Readonly<Record<Dialect, HeadNames>> = {
  upstash: headNames('upstash'),
  waypost: headNames('waypost'),
};

export interface HeadInput {
  claimed: Claimed;
  signature: string;
  /** From the URL's user info; a forwarded `Authorization` replaces it. */
  authorization?: string | undefined;
  /** Only if the operator configured one: receivers choose their keys by it. */
  region?: string | undefined;
  /** Whether the destination may have the publisher's `baggage`. */
  mayHaveBaggage?: boolean;
  /** The token with which the endpoint may keep results of steps (contract K 2). */
  checkpoint?: string | undefined;
}

/**
 * Names and values in turn, as undici takes them: first the stored header map, one line for each value, then what the
 * server adds. A forwarded header is left out when the server adds one of the same name. Only for `User-Agent` and
 * `Content-Type` the forwarded one wins (contract M 4.4.6).
 */
export function requestHead({
  claimed,
  signature,
  authorization,
  region,
  mayHaveBaggage,
  checkpoint,
}: HeadInput): string[] {
  const { message } = claimed;
  const { settings } = message;
  const names = NAMES[settings.dialect];

  const added = [
    names.signature,
    signature,
    names.messageId,
    message.id,
    names.retried,
    String(claimed.retried),
    // Answers are passed on as they come and never decompressed.
    'Accept-Encoding',
    'identity',
  ];
  if (settings.topicName !== undefined) added.push(names.topicName, settings.topicName);
  if (settings.scheduleId !== undefined) added.push(names.scheduleId, settings.scheduleId);
  if (message.callerIp !== undefined) added.push(names.callerIp, message.callerIp);
  if (region !== undefined) added.push(names.region, region);
  const { trace = settings.trace } = claimed;
  if (trace) {
    added.push('Traceparent', trace.parent);
    if (trace.state !== undefined) added.push('Tracestate', trace.state);
    if (trace.baggage !== undefined && mayHaveBaggage) added.push('Baggage', trace.baggage);
  }
  addWorkflowHeaders(added, { settings, retried: claimed.retried, checkpoint });

  const head: string[] = [];
  let hasUserAgent = false;
  let hasAuthorization = false;
  for (const name of Object.keys(message.header)) {
    if (isAdded(added, name) || (settings.run !== undefined && isLeftOut(settings.run, name))) continue;
    if (name === 'User-Agent') hasUserAgent = true;
    else if (name === 'Authorization') hasAuthorization = true;
    for (const value of message.header[name] ?? []) head.push(name, value);
  }
  if (!hasUserAgent) head.push('User-Agent', names.userAgent);
  if (!hasAuthorization && authorization !== undefined) head.push('Authorization', authorization);
  head.push(...added);
  return head;
}

/** Names of a header map are canonical already (contract M 3.5), so equality is enough. */
function isAdded(added: readonly string[], name: string): boolean {
  for (let at = 0; at < added.length; at += 2) {
    if (added[at] === name) return true;
  }
  return false;
}

function headNames(dialect: Dialect): HeadNames {
  return {
    userAgent: userAgent(dialect),
    signature: deliveryHeaderName(dialect, 'Signature'),
    messageId: deliveryHeaderName(dialect, 'Message-Id'),
    retried: deliveryHeaderName(dialect, 'Retried'),
    topicName: deliveryHeaderName(dialect, 'Topic-Name'),
    scheduleId: deliveryHeaderName(dialect, 'Schedule-Id'),
    callerIp: deliveryHeaderName(dialect, 'Caller-Ip'),
    region: deliveryHeaderName(dialect, 'Region'),
  };
}
