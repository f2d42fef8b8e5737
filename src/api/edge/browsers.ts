/**
 * Rejects requests from pages of origins that are not allowed. A page of any origin can send requests to this machine,
 * and in development everybody knows the token. So requests of such pages are rejected before their bodies are read.
 * Requests whose `Host` could be the name of another site are rejected too (decision 026). Clients other than browsers
 * send no origin.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIPv4, isIPv6 } from 'node:net';
import { memo } from '../../protocol/memo.ts';
import { type ApiResponse, NO_BODY, refusal } from '../response.ts';
import type { Match } from '../route-finder.ts';

export interface BrowserRules {
  /** Origins whose pages may call the API, as browsers write origins: `https://console.example.com`. */
  origins: readonly string[];
  /**
   * Names that a request may use for the server besides addresses, loopback names and names without a dot:
   * `dev.example.com`, `*.example.com`. `any`: every name, for a server where every action needs a secret token.
   */
  hosts: readonly string[] | 'any';
}

const METHODS = 'GET, POST, PUT, PATCH, DELETE';
/** Response headers that pages may read. */
const EXPOSED = [
  'Retry-After',
  'Waypost-Ignored',
  ...['RateLimit', 'Burst-RateLimit'].flatMap((kind) => [`${kind}-Limit`, `${kind}-Remaining`, `${kind}-Reset`]),
].join(', ');
/** How long a browser may cache the response to a preflight request. */
const PREFLIGHT_AGE_S = 600;

export class Browsers {
  readonly #origins: ReadonlySet<string>;
  /** Whether a `Host` may name this server. */
  readonly #isOurs: (host: string) => boolean;

  /** Throws a `TypeError` that names the first text that is not an origin. */
  constructor({ origins, hosts }: BrowserRules) {
    this.#origins = new Set(origins.map(readOrigin));
    const known = hosts === 'any' ? hosts : hosts.map((name) => name.toLowerCase());
    this.#isOurs = memo((host) => {
      const name = nameOf(host);
      return known === 'any' || isOfThisMachine(name) || known.some((each) => matchesHost(name, each));
    });
  }

  /**
   * Returns the response to a rejected or preflight request. For any other request, sets the headers that let the
   * browser show the response to its page, and returns `undefined`.
   */
  responseTo(
    { headers, method }: IncomingMessage,
    response: ServerResponse,
    match: Match | undefined,
  ): ApiResponse | undefined {
    const { host } = headers;
    if (host !== undefined && !this.#isOurs(host)) {
      return refusal(
        403,
        `this server is not called ${nameOf(host)}: WAYPOST_ALLOW_HOSTS names what else it is called`,
      );
    }
    if (isForAnyOrigin(match)) return undefined;
    const { origin } = headers;
    if (origin === undefined) return isOfOtherPage(headers) ? refusedPage('another origin') : undefined;
    if (isSameOrigin(origin, host)) return undefined;
    if (!this.#origins.has(origin)) return refusedPage(origin.slice(0, 200));
    response.setHeader('access-control-allow-origin', origin);
    response.setHeader('access-control-expose-headers', EXPOSED);
    response.setHeader('vary', 'Origin');
    const isPreflight = method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
    return isPreflight ? { ...NO_BODY, headers: preflightHeaders(headers) } : undefined;
  }
}

function refusedPage(origin: string): ApiResponse {
  return refusal(403, `pages of ${origin} may not call this server: WAYPOST_ALLOW_ORIGINS names those that may`);
}

function readOrigin(text: string): string {
  const { origin, protocol } = URL.canParse(text) ? new URL(text) : { origin: '', protocol: '' };
  if (text.replace(/\/$/, '') === origin && /^https?:$/.test(protocol)) return origin;
  throw new TypeError(`not an origin such as https://console.example.com: ${text}`);
}

/** True for webhooks: their URL is the secret, so pages of any origin may call them (contract W 14.9). */
function isForAnyOrigin(match: Match | undefined): boolean {
  for (const { isForAnyOrigin: isFor = false } of match?.routes.values() ?? []) return isFor;
  return false;
}

/**
 * For a request without an origin: true if the browser says that a page of another site loads it, for example as an
 * image or a script. False if the user followed a link.
 */
function isOfOtherPage(headers: IncomingMessage['headers']): boolean {
  const site = headers['sec-fetch-site'];
  return (site === 'cross-site' || site === 'same-site') && headers['sec-fetch-mode'] !== 'navigate';
}

function isSameOrigin(origin: string, host: string | undefined): boolean {
  return host !== undefined && URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
}

/** `Host` without port and final dot, in lower case. */
function nameOf(host: string): string {
  return host.slice(0, 300).replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase();
}

/** True for names that nobody can register in the DNS and use for a page. */
function isOfThisMachine(name: string): boolean {
  const literal = /^\[(.*)\]$/.exec(name)?.[1];
  if (literal !== undefined) return isIPv6(literal);
  if (isIPv4(name) || !name.includes('.')) return true;
  return name.endsWith('.localhost') || name === 'host.docker.internal';
}

function matchesHost(name: string, known: string): boolean {
  return known.startsWith('*.') ? name.endsWith(known.slice(1)) : name === known;
}

function preflightHeaders(headers: IncomingMessage['headers']): Record<string, string> {
  const requested = headers['access-control-request-headers'];
  const isPrivate = headers['access-control-request-private-network'] === 'true';
  return {
    'access-control-allow-methods': METHODS,
    'access-control-max-age': String(PREFLIGHT_AGE_S),
    // Config headers and forwarded headers can have any name, so every requested header is allowed.
    ...(requested === undefined ? undefined : { 'access-control-allow-headers': requested }),
    ...(isPrivate ? { 'access-control-allow-private-network': 'true' } : undefined),
  };
}
