/** Builds the headers of a delivery (contract M 7.2, W 9). */
import type { Claimed } from '../engine/model.ts';
import { deliveryHeaderName, userAgent } from '../protocol/options/dialect.ts';
import type { Dialect } from '../protocol/options/settings.ts';
import { addWorkflowHeaders, isLeftOut } from './workflow-head.ts';

/** Header names, built once per dialect, not per attempt. */
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
  /** From the user info of the URL. A forwarded `Authorization` takes precedence. */
  authorization?: string | undefined;
  /** Set only if the operator has configured a region. Receivers choose their keys by the region. */
  region?: string | undefined;
  /** Whether the destination may receive the publisher's `baggage`. */
  mayHaveBaggage?: boolean;
  /** The token with which the endpoint can save results of steps (contract K 2). */
  checkpoint?: string | undefined;
}

/**
 * Alternating names and values, as undici expects them: first the stored header map, one line per value, then the headers
 * of the server. A forwarded header is dropped if the server adds a header of the same name, except that forwarded
 * `User-Agent` and `Content-Type` take precedence (contract M 4.4.6).
 */
export function requestHead(input: HeadInput): string[] {
  const { header, settings } = input.claimed.message;
  const added = addedHeaders(input);
  const head: string[] = [];
  for (const name of Object.keys(header)) {
    if (isAmong(added, name) || (settings.run !== undefined && isLeftOut(settings.run, name))) continue;
    for (const value of header[name] ?? []) head.push(name, value);
  }
  const { authorization } = input;
  if (!isAmong(head, 'User-Agent')) head.push('User-Agent', NAMES[settings.dialect].userAgent);
  if (authorization !== undefined && !isAmong(head, 'Authorization')) head.push('Authorization', authorization);
  head.push(...added);
  return head;
}

/** The headers of the server, which replace forwarded headers of the same name. */
function addedHeaders({ claimed, signature, region, mayHaveBaggage, checkpoint }: HeadInput): string[] {
  const { message, retried } = claimed;
  const { settings } = message;
  const names = NAMES[settings.dialect];
  const { trace = settings.trace } = claimed;
  const added: string[] = [];
  const add = (name: string, value: string | undefined): void => {
    if (value !== undefined) added.push(name, value);
  };
  add(names.signature, signature);
  add(names.messageId, message.id);
  add(names.retried, String(retried));
  // Asks for uncompressed responses.
  add('Accept-Encoding', 'identity');
  add(names.topicName, settings.topicName);
  add(names.scheduleId, settings.scheduleId);
  add(names.callerIp, message.callerIp);
  add(names.region, region);
  add('Traceparent', trace?.parent);
  add('Tracestate', trace?.state);
  if (mayHaveBaggage) add('Baggage', trace?.baggage);
  addWorkflowHeaders(added, { settings, retried, checkpoint });
  return added;
}

/** Names in a header map are already canonical (contract M 3.5), so equality is sufficient. */
function isAmong(head: readonly string[], name: string): boolean {
  for (let at = 0; at < head.length; at += 2) {
    if (head[at] === name) return true;
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
