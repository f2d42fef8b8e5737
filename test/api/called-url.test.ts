import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { calledUrlReader, trustedProxies } from '../../src/api/edge/proxies.ts';
import type { CalledUrl } from '../../src/api/route.ts';
import { ApiError } from '../../src/protocol/errors.ts';

const readUrl = calledUrlReader(trustedProxies(['10.0.0.0/8']));

function read(rawTarget: string, headers: Record<string, string>, remoteAddress = '192.0.2.1'): CalledUrl {
  return readUrl({ url: rawTarget, headers, socket: { remoteAddress } } as unknown as IncomingMessage);
}

describe('the URL that was called (contract W 14.9)', () => {
  it('is the host of the request with its target', () => {
    const called = read('/v2/workflows/hooks/u/r/e?q=1', { host: 'server:8080' });
    expect(called).toEqual({ proto: 'http', host: 'server:8080', url: '/v2/workflows/hooks/u/r/e?q=1' });
  });

  it('has a target in absolute form without its origin', () => {
    expect(read('http://other/x?y', { host: 'server' }).url).toBe('/x?y');
  });

  it('is what a trusted proxy was called with', () => {
    const headers = {
      host: '10.0.0.7:8080',
      'x-forwarded-proto': 'https, http',
      'x-forwarded-host': 'queue.example, inner',
    };
    expect(read('/x', headers, '::ffff:10.1.2.3')).toEqual({
      proto: 'https',
      host: 'queue.example',
      url: '/x',
    });
    expect(read('/x', headers)).toEqual({ proto: 'http', host: '10.0.0.7:8080', url: '/x' });
  });

  it.each(['', 'a b', 'user:password@host', 'host/path', 'host?x', 'host:99999', '[::1'])(
    'refuses the host %j, of which no request could be made again',
    (host) => {
      expect(() => read('/x', { host })).toThrow(ApiError);
    },
  );
});
