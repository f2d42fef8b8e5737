/** Parses a destination URL into the parts of a request: the host to connect to, the path, and the credentials. */
import { withoutFragment } from '../protocol/urls/destination.ts';

export interface Destination {
  /** Scheme, host and port. */
  origin: string;
  /** Host without port; IPv6 literals in brackets. */
  hostname: string;
  /** Path and query for the request line. */
  path: string;
  /** The signed URL, as the receiver sees it: without user info, in characters that HTTP allows. */
  requestedUrl: string;
  /** `Basic …` from the URL's user info, if there is any (contract M 5.2.4). */
  authorization?: string;
}

/** Scheme, authority, and the rest up to a fragment; matches only URLs whose text can be sent unchanged. */
const PLAIN_URL = /^https?:\/\/([^/?#@\\\s]+)([/?][!"$-~]*)?(?:#.*)?$/i;

/**
 * Parses a URL that was accepted at publish; `origin`: the origin of the message. The path stays byte for byte as the
 * publisher wrote it (contract M 7.1), including `/a/../b` and `%2F`. Only text that a request line cannot contain
 * (spaces, non-ASCII characters) is encoded, as in the URL standard. Throws TypeError for an invalid URL.
 */
export function readDestination(url: string, origin: string): Destination {
  const plain = PLAIN_URL.exec(url);
  const hostname = hostnameOf(origin);
  if (plain !== null) {
    const path = withSlash(plain[2] ?? '/');
    return { origin, hostname, path, requestedUrl: isAscii(plain[1]) ? withoutFragment(url) : `${origin}${path}` };
  }
  const parsed = new URL(url);
  const authorization = basicAuthorization(parsed);
  const path = verbatimPath(url) ?? `${parsed.pathname}${parsed.search}`;
  const requestedUrl = `${origin}${path}`;
  return { origin, hostname, path, requestedUrl, ...(authorization === undefined ? {} : { authorization }) };
}

/** The path of a URL with user info, if its text can be sent unchanged. */
function verbatimPath(url: string): string | undefined {
  const match = /^https?:\/\/[^/?#\\\s]+([/?][!"$-~]*)?(?:#.*)?$/i.exec(url);
  return match === null ? undefined : withSlash(match[1] ?? '/');
}

/** A host with characters outside ASCII is sent in Punycode. */
function isAscii(authority: string | undefined): boolean {
  return authority !== undefined && /^[!-~]*$/.test(authority);
}

function withSlash(pathAndQuery: string): string {
  return pathAndQuery.startsWith('?') ? `/${pathAndQuery}` : pathAndQuery;
}

function hostnameOf(origin: string): string {
  const authority = origin.slice(origin.indexOf('//') + 2);
  const port = authority.lastIndexOf(':');
  return port > authority.lastIndexOf(']') ? authority.slice(0, port) : authority;
}

function basicAuthorization({ username, password }: URL): string | undefined {
  if (username === '' && password === '') return undefined;
  const credentials = `${percentDecoded(username)}:${percentDecoded(password)}`;
  return `Basic ${Buffer.from(credentials, 'utf8').toString('base64')}`;
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // Expected: an invalid percent-encoding, which is left unchanged.
    return text;
  }
}
