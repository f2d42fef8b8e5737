/**
 * Finds the URL that the client called. Behind trusted proxies it is the URL that the proxies were called by
 * (contract W 14.9).
 */
import type { IncomingMessage } from 'node:http';
import { ApiError } from '../../protocol/errors.ts';
import { textOfWire } from '../../protocol/urls/percent-encoding.ts';
import { pathAndQueryOf } from '../../protocol/urls/request-target.ts';
import type { CalledUrl } from '../route.ts';

/** Throws `ApiError` 400 when the request's headers make no valid URL. */
export type CalledUrlReader = (request: Pick<IncomingMessage, 'headers' | 'socket' | 'url'>) => CalledUrl;

/** A reader that believes `X-Forwarded-Proto` and `X-Forwarded-Host` when the peer is a trusted proxy. */
export function calledUrlReader(isTrusted: (peer: string) => boolean): CalledUrlReader {
  return ({ headers, socket, url: rawTarget = '/' }) => {
    const isForwarded = socket.remoteAddress !== undefined && isTrusted(socket.remoteAddress);
    const forwarded = (name: string): string | undefined => (isForwarded ? firstOf(headers[name]) : undefined);
    const called: CalledUrl = {
      // The proxy ends the encryption, so the connection from it is plain.
      proto: forwarded('x-forwarded-proto')?.toLowerCase() === 'https' ? 'https' : 'http',
      host: forwarded('x-forwarded-host') ?? headers.host ?? '',
      url: textOfWire(pathAndQueryOf(rawTarget)),
    };
    if (!isCallable(called)) throw new ApiError('invalid_request', 'the Host header does not name a host');
    return called;
  };
}

/** Each proxy appends its value, so the first one comes from the proxy nearest to the client. */
function firstOf(value: string | string[] | undefined): string | undefined {
  const [first = ''] = (Array.isArray(value) ? value.join(',') : (value ?? '')).split(',');
  return first.trim() === '' ? undefined : first.trim();
}

/** False for a host that contains a path, a query or a user: it would change the meaning of the whole URL. */
function isCallable({ proto, host, url }: CalledUrl): boolean {
  return /^[^/?#@\\\s]+$/.test(host) && URL.canParse(`${proto}://${host}${url}`);
}
