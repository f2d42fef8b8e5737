/** Names, values and maps of HTTP headers. */
import { ApiError, invalidHeader } from './errors.ts';
import { memo } from './memo.ts';
import type { HeaderMap } from './options/settings.ts';

/**
 * Headers that belong to one HTTP connection or to the framing of one request, lower-case (contract M 4.4.5, RFC 9110
 * section 7.6.1). Such headers would break the delivery, or change its meaning. Clients that forward all headers of a
 * request send such headers too.
 */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'http2-settings',
]);

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Matches any character except tabs and the printable characters of Latin-1. */
const UNSENDABLE = /[^\t -~\x80-\xff]/;

/** True when `lowerName` (lower-case) belongs to the connection and is never forwarded. */
export function isConnectionHeader(lowerName: string): boolean {
  return CONNECTION_HEADERS.has(lowerName);
}

/** True when `name` is a field name by RFC 9110 (a token). */
export function isHeaderName(name: string): boolean {
  return TOKEN.test(name);
}

/** True when HTTP/1.1 can carry `value`: Latin-1 without control characters, tab allowed. */
export function isHeaderValue(value: string): boolean {
  return !UNSENDABLE.test(value);
}

// ASCII letters only: letters like "ß" or "İ" would change length in upper case, so they stay unchanged.
const MISSPELT = /(?<![^-])[a-z]|(?<=[^-])[A-Z]/g;

/** Converts `x-api-key` to `X-Api-Key`, the spelling in every header map (contract M 3.5). */
export const canonicalHeaderName: (name: string) => string = memo((name) =>
  name.replace(MISSPELT, (letter) => (letter >= 'a' ? letter.toUpperCase() : letter.toLowerCase())),
);

/** An empty header map without a prototype, so that names such as `__proto__` are ordinary names. */
export function newHeaderMap(): HeaderMap {
  return Object.create(null) as HeaderMap;
}

/** Adds one header line. Lines of the same name, in any spelling, become several values. */
export function addHeader(map: HeaderMap, name: string, value: string): void {
  const canonical = canonicalHeaderName(name);
  const values = map[canonical];
  if (values === undefined) map[canonical] = [value];
  else values.push(value);
}

/** The header map of the flat list `[name, value, name, value, …]` that Node's `rawHeaders` and undici provide. */
export function headerMapFromRaw(rawHeaders: readonly string[]): HeaderMap {
  const map = newHeaderMap();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) addHeader(map, rawHeaders[i] ?? '', rawHeaders[i + 1] ?? '');
  return map;
}

/** Removes blanks and tabs at both ends, and nothing else: `trim` would also remove the last byte of a UTF-8 "à". */
export function trimBlanks(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isBlank(value.charCodeAt(start))) start++;
  while (end > start && isBlank(value.charCodeAt(end - 1))) end--;
  return end - start === value.length ? value : value.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/**
 * Throws `invalid_header` (400) when HTTP cannot carry the header `name` with `values`. The error contains
 * `headerAsSent`, the name as the client wrote it (`Upstash-Forward-X`). If such a header were accepted, every attempt
 * would fail in the same way.
 */
export function refuseUnforwardable(headerAsSent: string, name: string, values: readonly string[]): void {
  if (!isHeaderName(name)) {
    if (name === '') throw invalidHeader(headerAsSent, 'the name of the header to forward is missing');
    throw new ApiError('invalid_header', `invalid header name ${quoted(headerAsSent)}: not a token of HTTP`);
  }
  if (name.toLowerCase() === '__proto__') throw invalidHeader(headerAsSent, 'this name cannot be forwarded');
  for (const value of values) {
    if (!isHeaderValue(value)) throw invalidHeader(headerAsSent, UNSENDABLE_VALUE);
  }
}

/** The reason why `isHeaderValue` refuses a value. */
export const UNSENDABLE_VALUE = 'the value has a control character or a character above Latin-1';

/** A client's value for an error text: quoted, escaped and truncated to a readable length. */
export function quoted(value: string): string {
  return JSON.stringify(value.length <= 64 ? value : `${value.slice(0, 64)}…`);
}
