/** Builds the result of a wait: the event, or the timeout (contract W 14.6, 14.9). */
import { Buffer } from 'node:buffer';
import { jsonWithBase64 } from '../protocol/bodies.ts';
import { isHeaderName, isHeaderValue, newHeaderMap } from '../protocol/headers.ts';
import type { HeaderMap } from '../protocol/options/settings.ts';

/** The step as it was registered, with the event as its result. If the event is empty, the step has no `out`. */
export function notifiedStep(step: Uint8Array, eventId: string, event: Uint8Array): Uint8Array {
  const members = withEnd(step, { waitEventId: eventId, waitTimeout: false });
  return event.length > 0 ? jsonWithBase64(members, 'out', event) : bytesOf(members);
}

/** The step of the wait as it was registered, marked as timed out. */
export function timedOutStep(step: Uint8Array, eventId: string): Uint8Array {
  return bytesOf(withEnd(step, { waitEventId: eventId, waitTimeout: true }));
}

function withEnd(step: Uint8Array, end: Record<string, unknown>): Record<string, unknown> {
  const { out: _out, ...registered } = JSON.parse(Buffer.from(step).toString('utf8')) as Record<string, unknown>;
  return { ...registered, ...end };
}

function bytesOf(members: Record<string, unknown>): Uint8Array {
  return Buffer.from(JSON.stringify(members));
}

/** A request to a webhook of a run. The requested URL is `<proto>://<host><url>`. */
export interface HookCall {
  method: string;
  header: HeaderMap;
  body: Uint8Array;
  proto: string;
  host: string;
  url: string;
}

/**
 * The event for a request to a webhook. Client libraries build a `Request` from the event, so it omits everything that
 * `Request` does not accept: bodies of GET and HEAD requests, and invalid headers.
 */
export function hookEvent({ method, header, body, proto, host, url }: HookCall): Uint8Array {
  const sent = newHeaderMap();
  for (const [name, values] of Object.entries(header)) {
    if (isHeaderName(name) && values.every(isHeaderValue)) sent[name] = values;
  }
  const hasBody = body.length > 0 && method !== 'GET' && method !== 'HEAD';
  const members = { method, header: sent, proto, host, url };
  return hasBody ? jsonWithBase64(members, 'body', body) : bytesOf(members);
}
