/**
 * Which requests of browsers are answered? A page of any origin can send one to this machine, and in development everybody
 * knows the token. So pages of other origins are refused before their bodies are read, and a name that could be theirs is
 * refused as the name of this server (decision 026). What is no browser says of no origin, and is not looked at here.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIPv4, isIPv6 } from 'node:net';
import { type Answer, NO_BODY, refusal } from './answer.ts';
import type { Match } from './route-finder.ts';

export interface BrowserRules {
  /** Origins whose pages may call, as browsers write them: `https://console.example.com`. */
  origins: readonly string[];
  /**
   * Names by which the server may be called besides addresses, loopback names and those without a dot: `dev.example.com`,
   * `*.example.com`. `any`: by every name, where nobody can do anything without a secret token.
   */
  hosts: readonly string[] | 'any';
}

const METHODS = 'GET, POST, PUT, PATCH, DELETE';
/** What clients read of an answer besides its body. */
const EXPOSED = [
  'Retry-After',
  'Waypost-Ignored',
  ...['RateLimit', 'Burst-RateLimit'].flatMap((kind) => [`${kind}-Limit`, `${kind}-Remaining`, `${kind}-Reset`]),
].join(', ');
/** How long a browser remembers what it may send. */
const PREFLIGHT_AGE_S = 600;

export class Browsers {
  readonly #origins: ReadonlySet<string>;
  readonly #hosts: readonly string[] | 'any';

  /** Throws a `TypeError` that names an origin which is none. */
  constructor({ origins, hosts }: BrowserRules) {
    this.#origins = new Set(origins.map(readOrigin));
    this.#hosts = hosts === 'any' ? hosts : hosts.map((name) => name.toLowerCase());
  }

  /**
   * The answer to a request that is not to be handled: a refusal, or the answer to what a browser asks beforehand. Others
   * get the headers by which the browser shows the answer to its page.
   */
  answer({ headers, method }: IncomingMessage, response: ServerResponse, match: Match | undefined): Answer | undefined {
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

  #isOurs(host: string): boolean {
    if (this.#hosts === 'any') return true;
    const name = nameOf(host);
    return isOfThisMachine(name) || this.#hosts.some((known) => matches(name, known));
  }
}

function refusedPage(origin: string): Answer {
  return refusal(403, `pages of ${origin} may not call this server: WAYPOST_ALLOW_ORIGINS names those that may`);
}

function readOrigin(text: string): string {
  const { origin, protocol } = URL.canParse(text) ? new URL(text) : { origin: '', protocol: '' };
  if (text.replace(/\/$/, '') === origin && /^https?:$/.test(protocol)) return origin;
  throw new TypeError(`not an origin such as https://console.example.com: ${text}`);
}

/** Webhooks: their URLs are the secret, and whoever has one may call it from where they like (contract W 14.9). */
function isForAnyOrigin(match: Match | undefined): boolean {
  for (const { isForAnyOrigin: isFor = false } of match?.routes.values() ?? []) return isFor;
  return false;
}

/** Of requests that name no origin: a browser says so of images, scripts and the like. A link may be followed. */
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

/** Names that no stranger can have in the DNS for a page of theirs. */
function isOfThisMachine(name: string): boolean {
  const literal = /^\[(.*)\]$/.exec(name)?.[1];
  if (literal !== undefined) return isIPv6(literal);
  if (isIPv4(name) || !name.includes('.')) return true;
  return name.endsWith('.localhost') || name === 'host.docker.internal';
}

function matches(name: string, known: string): boolean {
  return known.startsWith('*.') ? name.endsWith(known.slice(1)) : name === known;
}

function preflightHeaders(headers: IncomingMessage['headers']): Record<string, string> {
  const asked = headers['access-control-request-headers'];
  const isPrivate = headers['access-control-request-private-network'] === 'true';
  return {
    'access-control-allow-methods': METHODS,
    'access-control-max-age': String(PREFLIGHT_AGE_S),
    // Config headers and those to forward have any name, so that what is asked for is what is allowed.
    ...(asked === undefined ? undefined : { 'access-control-allow-headers': asked }),
    ...(isPrivate ? { 'access-control-allow-private-network': 'true' } : undefined),
  };
}
