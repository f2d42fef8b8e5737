/** Which URL did the caller ask for? Behind trusted proxies the one that these were asked for (contract W 14.9). */
import type { IncomingMessage } from 'node:http';
import { ApiError } from '../protocol/errors.ts';
import { textOfWire } from '../protocol/percent-encoding.ts';
import { pathAndQueryOf } from '../protocol/request-target.ts';
import type { CalledUrl } from './route.ts';

/** Throws `ApiError` 400 when what the request says is no URL that could be called. */
export type CalledUrlReader = (request: Pick<IncomingMessage, 'headers' | 'socket' | 'url'>) => CalledUrl;

/** A reader that believes `X-Forwarded-Proto` and `X-Forwarded-Host` when the peer is a trusted proxy. */
export function calledUrlReader(isTrusted: (peer: string) => boolean): CalledUrlReader {
  return ({ headers, socket, url: rawTarget = '/' }) => {
    const isForwarded = socket.remoteAddress !== undefined && isTrusted(socket.remoteAddress);
    const forwarded = (name: string): string | undefined => (isForwarded ? firstOf(headers[name]) : undefined);
    const called: CalledUrl = {
      // Behind the proxy, which ends the encryption, there is none.
      proto: forwarded('x-forwarded-proto')?.toLowerCase() === 'https' ? 'https' : 'http',
      host: forwarded('x-forwarded-host') ?? headers.host ?? '',
      url: textOfWire(pathAndQueryOf(rawTarget)),
    };
    if (!isCallable(called)) throw new ApiError('invalid_request', 'the Host header does not name a host');
    return called;
  };
}

/** Each proxy on the way adds its own behind the others': the first was nearest to the caller. */
function firstOf(value: string | string[] | undefined): string | undefined {
  const [first = ''] = (Array.isArray(value) ? value.join(',') : (value ?? '')).split(',');
  return first.trim() === '' ? undefined : first.trim();
}

/** A host with a path, a query or a user in it would make another URL of the whole. */
function isCallable({ proto, host, url }: CalledUrl): boolean {
  return /^[^/?#@\\\s]+$/.test(host) && URL.canParse(`${proto}://${host}${url}`);
}
