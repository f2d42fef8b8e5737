/** Selects the headers of a publish that are delivered with its message. */
import { invalidHeader } from '../errors.ts';
import {
  addHeader,
  canonicalHeaderName,
  isConnectionHeader,
  isHeaderName,
  isHeaderValue,
  newHeaderMap,
  refuseUnforwardable,
  trimBlanks,
  UNSENDABLE_VALUE,
} from '../headers.ts';
import { hasConfigPrefix } from './config-names.ts';
import type { Configuration, OptionsInput, Scope } from './config-scopes.ts';
import type { HeaderMap } from './settings.ts';

/**
 * Headers that `Upstash-Header-Forward: true` does not forward: two that the client's HTTP library sets for its own request, and
 * `__proto__`, which cannot be forwarded.
 */
const CALLER_HEADERS = new Set(['accept-encoding', 'user-agent', '__proto__']);

/**
 * The headers that were forwarded individually, without headers of a connection. Throws 400 for a header that HTTP cannot
 * carry.
 */
export function forwardedHeaders(scope: Scope): HeaderMap {
  const map = newHeaderMap();
  for (const [name, { header, values }] of scope.forwarded) {
    if (isConnectionHeader(name.toLowerCase())) continue;
    refuseUnforwardable(header, name, values);
    map[name] = values;
  }
  return map;
}

/**
 * Adds `Content-Type` to the message's `forwarded` headers, unless these contain a `Content-Type` (contract M 4.4.3 and
 * 4.4.4).
 */
export function explicitHeaders({ contentType }: Configuration, forwarded: HeaderMap): HeaderMap {
  if (contentType !== undefined && !isHeaderValue(contentType.value)) {
    throw invalidHeader(contentType.header, UNSENDABLE_VALUE);
  }
  if (contentType !== undefined) forwarded['Content-Type'] ??= [contentType.value];
  return forwarded;
}

/**
 * `explicit` together with the other headers of the request, except headers of the connection, of the client's HTTP
 * library and of the operator's proxy (contract M 4.5). Explicit values take precedence over other values of the same
 * name.
 */
export function withAllHeaders(explicit: HeaderMap, input: OptionsInput): HeaderMap {
  const { rawHeaders, tokenInQuery, proxyHeaders } = input;
  const nominated = connectionOptions(rawHeaders);
  const map = newHeaderMap();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const lowerName = name.toLowerCase();
    const isExcluded =
      hasConfigPrefix(name) ||
      isConnectionHeader(lowerName) ||
      CALLER_HEADERS.has(lowerName) ||
      nominated.has(lowerName) ||
      (lowerName === 'authorization' && !tokenInQuery) ||
      proxyHeaders.some((pattern) => matches(lowerName, pattern)) ||
      explicit[canonicalHeaderName(name)] !== undefined;
    if (isExcluded) continue;
    const value = rawHeaders[i + 1] ?? '';
    // Only the JSON of a batch item can have such a header; the HTTP request of a client cannot.
    if (!isHeaderName(name) || !isHeaderValue(value)) refuseUnforwardable(name, name, [value]);
    addHeader(map, name, trimBlanks(value));
  }
  return Object.assign(map, explicit);
}

/** Lower-case names that `Connection` declares as specific to this connection (RFC 9110 section 7.6.1). */
function connectionOptions(rawHeaders: readonly string[]): Set<string> {
  const options = new Set<string>();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== 'connection') continue;
    for (const option of (rawHeaders[i + 1] ?? '').split(',')) options.add(trimBlanks(option).toLowerCase());
  }
  return options;
}

function matches(lowerName: string, pattern: string): boolean {
  return pattern.endsWith('*') ? lowerName.startsWith(pattern.slice(0, -1)) : lowerName === pattern;
}
