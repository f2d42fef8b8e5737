import { describe, expect, it } from 'vitest';
import { messageOf, read } from './reading.ts';
import { headerMap, refusalOf } from './refusal.ts';

describe('forwarded headers', () => {
  it('lose the prefix once, merge by name and are the whole header map (30, 31, 42, 43, 46)', () => {
    const { header } = read([
      'upstash-forward-x-y',
      'v1',
      'Upstash-Forward-Upstash-Z',
      'v',
      'UPSTASH-FORWARD-X-Y',
      ' v2 ',
      'X-Other',
      'no',
      'Cookie',
      'no',
    ]);
    expect(header).toEqual(headerMap({ 'X-Y': ['v1', 'v2'], 'Upstash-Z': ['v'] }));
  });

  it('take precedence over the content type of the request', () => {
    const { header } = read(['Content-Type', 'a/b', 'Upstash-Forward-Content-Type', 'c/d']);
    expect(header).toEqual(headerMap({ 'Content-Type': ['c/d'] }));
  });

  it.each(['__proto__', 'a b', ''])('are rejected if HTTP cannot carry them: %j', (name) => {
    const refusal = refusalOf(() => read([`Upstash-Forward-${name}`, 'v']));
    expect(refusal).toMatchObject({ code: 'invalid_header', status: 400 });
    expect(refusal.message).toContain('Upstash-Forward-');
    expect(refusalOf(() => read([`Upstash-Callback-Forward-${name}`, 'v'])).message).toContain(
      'Upstash-Callback-Forward-',
    );
  });

  it('may be called constructor', () => {
    expect(read(['Upstash-Forward-Constructor', 'v', 'Upstash-Forward-ToString', 'w']).header).toEqual(
      headerMap({ Constructor: ['v'], Tostring: ['w'] }),
    );
  });

  it.each([
    ...['Host', 'content-length', 'Connection', 'KEEP-ALIVE', 'Proxy-Connection', 'Proxy-Authenticate'],
    ...['Proxy-Authorization', 'TE', 'Trailer', 'Transfer-Encoding', 'Upgrade', 'Expect', 'HTTP2-Settings'],
  ])('are omitted if they belong to a connection: %s', (name) => {
    const { header, explicitHeader, settings } = read([
      ...[`Upstash-Forward-${name}`, 'what no connection\n could carry', 'Upstash-Forward-X', 'v'],
      ...['Upstash-Callback', 'https://told.example', `Upstash-Callback-Forward-${name}`, 'v'],
    ]);
    expect([header, explicitHeader]).toEqual([headerMap({ X: ['v'] }), headerMap({ X: ['v'] })]);
    expect(settings.callback?.header).toEqual(headerMap({}));
  });

  it('keep the bytes of UTF-8', () => {
    expect(read(['Upstash-Forward-X', '\u00c3\u00a0 ']).header['X']).toEqual(['\u00c3\u00a0']);
  });
});

describe('Upstash-Header-Forward', () => {
  const incoming = [
    'Host',
    'server',
    'Connection',
    'keep-alive, X-Hop',
    'X-Hop',
    'a',
    'Content-Length',
    '3',
    'Accept-Encoding',
    'gzip',
    'User-Agent',
    'webhook',
    'Expect',
    '100-continue',
    'Authorization',
    'Bearer t',
    'X-Forwarded-For',
    '1.2.3.4',
    'Via',
    'proxy',
    '__proto__',
    'x',
    'Content-Type',
    'a/b',
    'X-Event',
    'one',
    'x-event',
    'two',
    'X-Both',
    'blanket',
    'Upstash-Forward-X-Both',
    'explicit',
    'Upstash-Header-Forward',
    'True',
    'Waypost-Foo',
    'x',
  ];

  it('forwards all headers except those of the connection, the client library and the proxy (45)', () => {
    const { header, explicitHeader } = read(incoming);
    expect(header).toEqual(headerMap({ 'X-Event': ['one', 'two'], 'X-Both': ['explicit'], 'Content-Type': ['a/b'] }));
    expect(explicitHeader).toEqual(headerMap({ 'X-Both': ['explicit'], 'Content-Type': ['a/b'] }));
  });

  it('forwards `Authorization` if the token is in the query', () => {
    expect(read(incoming, { tokenInQuery: true }).header['Authorization']).toEqual(['Bearer t']);
  });

  it('rejects headers that only a batch item can have, since HTTP cannot carry them', () => {
    expect(messageOf(['Upstash-Header-Forward', 'true', 'X-A', 'a\nb'])).toMatch(/^invalid X-A: /);
    expect(messageOf(['Upstash-Header-Forward', 'true', 'X A', 'b'])).toMatch(/^invalid header name "X A"/);
    expect(messageOf(['Content-Type', '漢'])).toMatch(/^invalid Content-Type: /);
  });

  it('is off by default (44)', () => {
    expect(read(['X-Event', 'one', 'Upstash-Header-Forward', 'false']).header).toEqual(headerMap({}));
  });
});
