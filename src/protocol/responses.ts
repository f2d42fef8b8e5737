/** Decides whether a response of an endpoint is a success, and describes redirects in error texts. */

import type { HeaderMap, Redaction } from './options/settings.ts';
import { hides } from './redaction.ts';
import { decodeWireText } from './urls/request-target.ts';

/** True for any 2xx. A redirect is a failure, since it is not followed (contract M 7.3). */
export function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299;
}

const REDIRECTS: ReadonlySet<number> = new Set([300, 301, 302, 303, 307, 308]);
/** A longer redirect address is cut, to keep the error text readable. The log has the whole `Location` header. */
const ADDRESS_LENGTH_MAX = 1_000;

/**
 * The end of an error text about a redirect of the request for `url`; empty if the response is not a redirect. The text
 * has no address if the response has none or `redaction` hides it. The query of the address, which may contain secrets,
 * is always left out.
 */
export function redirectText(
  { status, header }: { status: number; header: HeaderMap },
  url: string,
  redaction: Redaction | undefined,
): string {
  if (!REDIRECTS.has(status)) return '';
  const isHidden = redaction !== undefined && hides(redaction, 'Location');
  const address = isHidden ? undefined : addressOf(header['Location']?.[0], url);
  return address === undefined ? `, a redirect; ${NOT_FOLLOWED}` : `, a redirect to ${address}; ${NOT_FOLLOWED}`;
}

const NOT_FOLLOWED = 'redirects are not followed';

/** `error` without the path that `redirectText` added, for a log that must not contain paths. */
export function withoutRedirectPath(error: string): string {
  return error.replace(/(, a redirect to https?:\/\/[^/\s]+)\/\S*;/, '$1;');
}

function addressOf(location: string | undefined, url: string): string | undefined {
  if (location === undefined) return undefined;
  const target = URL.parse(decodeWireText(location), url);
  if (target === null || !/^https?:$/.test(target.protocol)) return undefined;
  const address = `${target.origin}${target.pathname}${target.search === '' ? '' : '?…'}`;
  return address.length > ADDRESS_LENGTH_MAX ? `${address.slice(0, ADDRESS_LENGTH_MAX)}…` : address;
}
