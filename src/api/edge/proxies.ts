/**
 * Reads the client's address and the URL that the client called. Behind trusted proxies, these are the right-most untrusted
 * address (contract M 7.5) and the URL with which the proxies were called (contract W 14.9).
 */
import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';
import { ApiError } from '../../protocol/errors.ts';
import { memo } from '../../protocol/memo.ts';
import { decodeWireText, pathAndQueryOf } from '../../protocol/urls/request-target.ts';
import type { CalledUrl } from '../route.ts';

type Address = ReturnType<typeof ipaddr.process>;
type Cidr = [Address, number];

export type CallerIpReader = (peer: string | undefined, forwardedFor: string | undefined) => string | undefined;

/**
 * Returns a reader that trusts only the entries of `X-Forwarded-For` that `trustedProxies` (addresses or CIDRs) have
 * added. Throws a `TypeError` that names the first invalid entry.
 */
export function callerIpReader(trustedProxies: readonly string[]): CallerIpReader {
  const trusted = trustedProxies.map(parseCidr);
  return (peer, forwardedFor) => {
    if (peer === undefined) return undefined;
    if (forwardedFor === undefined) return canonicalText(peer);
    const address = parseAddress(peer);
    if (!address) return undefined;
    const caller = isTrusted(address, trusted) ? firstUntrusted(address, forwardedFor, trusted) : address;
    return caller.toString();
  };
}

/** Returns a function that says whether an address is one of `proxies` (addresses or CIDRs). Throws like `callerIpReader`. */
export function trustedProxies(proxies: readonly string[]): (peer: string) => boolean {
  const trusted = proxies.map(parseCidr);
  return (peer) => {
    const address = parseAddress(peer);
    return address !== undefined && isTrusted(address, trusted);
  };
}

/** Walks from the nearest proxy outwards. A trusted proxy writes only addresses, so any other text ends the walk. */
function firstUntrusted(peer: Address, forwardedFor: string, trusted: readonly Cidr[]): Address {
  const hops = forwardedFor.split(',');
  let nearest = peer;
  for (const hop of hops.reverse()) {
    const address = parseAddress(withoutPort(hop.trim()));
    if (!address) return nearest;
    nearest = address;
    if (!isTrusted(address, trusted)) return address;
  }
  return nearest;
}

function isTrusted(address: Address, trusted: readonly Cidr[]): boolean {
  return trusted.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits));
}

/** Some proxies append the port: `203.0.113.7:5123`, `[2001:db8::1]:5123`. */
function withoutPort(text: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1];
  if (bracketed !== undefined) return bracketed;
  return /^([0-9.]+):\d+$/.exec(text)?.[1] ?? text;
}

/**
 * An IPv4 address mapped into IPv6 counts as IPv4. A zone (`%eth0`) has a meaning only on its machine, so it is removed. Cached,
 * since the same few peers send nearly all requests.
 */
const parseAddress: (text: string) => Address | undefined = memo((text) => {
  const [address = ''] = text.split('%');
  if (ipaddr.IPv4.isValidFourPartDecimal(address) || ipaddr.IPv6.isValid(address)) return ipaddr.process(address);
  return undefined;
});

const canonicalText: (text: string) => string | undefined = memo((text) => parseAddress(text)?.toString());

function parseCidr(text: string): Cidr {
  const [, base = '', bits] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const address = parseAddress(base.trim());
  const bitsMax = address?.kind() === 'ipv4' ? 32 : 128;
  const length = bits === undefined ? bitsMax : Number(bits);
  if (!address || length > bitsMax) throw new TypeError(`not an address or CIDR: ${text}`);
  return [address, length];
}

/** Throws `ApiError` 400 if the headers of the request make no valid URL. */
export type CalledUrlReader = (request: Pick<IncomingMessage, 'headers' | 'socket' | 'url'>) => CalledUrl;

/** Returns a reader that trusts `X-Forwarded-Proto` and `X-Forwarded-Host` if the peer is a trusted proxy. */
export function calledUrlReader(isTrusted: (peer: string) => boolean): CalledUrlReader {
  return ({ headers, socket, url: rawTarget = '/' }) => {
    const isForwarded = socket.remoteAddress !== undefined && isTrusted(socket.remoteAddress);
    const forwarded = (name: string): string | undefined => (isForwarded ? firstOf(headers[name]) : undefined);
    const called: CalledUrl = {
      // The proxy terminates TLS, so its connection to this server is plain HTTP.
      proto: forwarded('x-forwarded-proto')?.toLowerCase() === 'https' ? 'https' : 'http',
      host: forwarded('x-forwarded-host') ?? headers.host ?? '',
      url: decodeWireText(pathAndQueryOf(rawTarget)),
    };
    if (!isCallable(called)) throw new ApiError('invalid_request', 'the Host header does not name a host');
    return called;
  };
}

/** The first value: each proxy appends its own value, so the first value comes from the proxy nearest to the client. */
function firstOf(value: string | string[] | undefined): string | undefined {
  const [first = ''] = (Array.isArray(value) ? value.join(',') : (value ?? '')).split(',');
  return first.trim() === '' ? undefined : first.trim();
}

/** False for a host with a path, a query or a user, which would change the meaning of the whole URL. */
function isCallable({ proto, host, url }: CalledUrl): boolean {
  return /^[^/?#@\\\s]+$/.test(host) && URL.canParse(`${proto}://${host}${url}`);
}
