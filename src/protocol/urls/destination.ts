/** Reads and checks the destination of a publish: a URL or the name of a URL group. */
import { ApiError } from '../errors.ts';
import { memo } from '../memo.ts';
import { isName } from '../names.ts';
import { isMasked } from './masked-url.ts';
import { decodeWireText, percentDecode } from './request-target.ts';

/** The destination of a publish. `url` is stored verbatim; views show it without its password. */
export type Destination = { kind: 'url'; url: string } | { kind: 'group'; name: string };

/** Twice the 8 KiB that common clients and servers accept. */
const URL_LENGTH_MAX = 16_384;
/** The limit of DNS. PostgreSQL limits rows of the index of endpoint backlogs to about 2,700 bytes. */
const HOST_LENGTH_MAX = 253;

const SCHEME = /^https?:\/\//i;
const SCHEME_WITH_ONE_SLASH = /^(https?:)\/(?!\/)/i;
/** Characters that `new URL` silently removes, so that the called URL would differ from the stored URL. */
const REMOVED_BY_URL = /\p{Cc}|^ | $/u;

/**
 * Reads the destination from the path (contract M 5.1). `rawRest` is the raw text between the route and the query, with a
 * final `?` if the query is empty. `destinationQuery` is `SplitQuery.rest`. Throws `invalid_destination` (400).
 */
export function readDestination(rawRest: string, destinationQuery: string): Destination {
  if (SCHEME.test(rawRest)) return urlDestination(decodeWireText(rawRest), destinationQuery);
  // Some proxies merge slashes.
  if (SCHEME_WITH_ONE_SLASH.test(rawRest)) {
    return urlDestination(decodeWireText(rawRest.replace(SCHEME_WITH_ONE_SLASH, '$1//')), destinationQuery);
  }
  // For a group name, and for a URL that was escaped as a whole, an empty query means no query.
  const rawName = rawRest.endsWith('?') ? rawRest.slice(0, -1) : rawRest;
  const decoded = percentDecode(rawName);
  if (decoded !== undefined && SCHEME.test(decoded)) return urlDestination(decoded, destinationQuery);
  return groupDestination(decoded ?? rawName);
}

/** The destination of a batch item: the text is not decoded. Throws `invalid_destination` (400). */
export function readDestinationText(text: string): Destination {
  return SCHEME.test(text) ? urlDestination(text, '') : groupDestination(text);
}

function urlDestination(text: string, rawQuery: string): Destination {
  const base = withoutFragment(text);
  const query = decodeWireText(rawQuery);
  const url = query === '' ? base : withoutFragment(`${base}${base.includes('?') ? '&' : '?'}${query}`);
  checkUrl(url);
  return { kind: 'url', url };
}

function groupDestination(name: string): Destination {
  if (name === '') throw new ApiError('invalid_destination', 'a non-empty destination must be provided');
  if (!isName(name)) throw new ApiError('invalid_destination', `invalid destination url: ${WRONG_SCHEME}`);
  return { kind: 'group', name };
}

/** Removes the fragment. A fragment is never sent, so the signed URL would differ from the URL that the receiver sees. */
export function withoutFragment(url: string): string {
  const hashAt = url.indexOf('#');
  return hashAt < 0 ? url : url.slice(0, hashAt);
}

/**
 * Checks scheme, host, port and length of a URL (contract M 5.2.1) and returns it parsed, with its user info. Throws
 * `invalid_destination` (400), `invalid destination url: …`.
 */
export function checkUrl(url: string): URL {
  const parsed = parseUrl(url);
  if (typeof parsed === 'string') throw new ApiError('invalid_destination', `invalid destination url: ${parsed}`);
  return parsed;
}

const WRONG_SCHEME = 'endpoint has invalid scheme, add http:// or https://';

/** The parsed URL, or the reason why it cannot be called. The result is cached and shared: do not change it. */
export const parseUrl: (url: string) => URL | string = memo((url) => {
  const scheme = SCHEME.exec(url);
  if (scheme === null) return WRONG_SCHEME;
  if (url.length > URL_LENGTH_MAX) return `endpoint is longer than ${URL_LENGTH_MAX} characters`;
  if (REMOVED_BY_URL.test(url)) return 'endpoint has a control character or begins or ends with a blank';
  if (isMasked(url)) return 'endpoint has the placeholder *** as its password: give the real password';
  // `new URL` reads "http:///x" as the host x.
  const hostStart = url[scheme[0].length];
  if (hostStart === undefined || '/\\?#'.includes(hostStart)) return 'endpoint has no host';
  const parsed = URL.parse(url);
  if (parsed === null) return 'endpoint has an invalid host or port';
  if (parsed.port === '0') return 'endpoint has an invalid host or port';
  if (parsed.hostname.length > HOST_LENGTH_MAX) return `endpoint has a host of more than ${HOST_LENGTH_MAX} characters`;
  return parsed;
});
