/** What a destination URL says about one request: where to connect, which path to ask for, with which credentials. */
import { withoutFragment } from '../protocol/urls/destination.ts';

export interface Destination {
  /** Scheme, host and port. */
  origin: string;
  /** Host without port; IPv6 literals in brackets. */
  hostname: string;
  /** What goes into the request line: path and query. */
  path: string;
  /** The URL as the receiver sees it, which the signature names: without user info, and in characters of HTTP. */
  requestedUrl: string;
  /** `Basic …` made of the URL's user info, if it has any (contract M 5.2.4). */
  authorization?: string;
}

/** Scheme, authority, and the rest up to a fragment; only URLs whose text can go on the wire as it is. */
const PLAIN_URL = /^https?:\/\/([^/?#@\\\s]+)([/?][!"$-~]*)?(?:#.*)?$/i;

/**
 * Reads a URL that was accepted at publish; `origin` is that of the message. The path stays byte for byte what the
 * publisher wrote (contract M 7.1), `/a/../b` and `%2F` included. Only text that a request line cannot carry
 * (blanks, characters beyond ASCII) is written as the URL standard encodes it. Throws TypeError when it is no URL.
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

/** The path of a URL with user info, if its text can go on the wire as it is. */
function verbatimPath(url: string): string | undefined {
  const match = /^https?:\/\/[^/?#\\\s]+([/?][!"$-~]*)?(?:#.*)?$/i.exec(url);
  return match === null ? undefined : withSlash(match[1] ?? '/');
}

/** A host with other characters is asked for in Punycode. */
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
    // Expected: a `%` that encodes nothing. Then the text stays as it is.
    return text;
  }
}
