import { describe, expect, it } from 'vitest';
import { checkUrl, readDestination, readDestinationText } from '../../src/protocol/urls/destination.ts';
import { fc } from '../support/fast-check.ts';
import { onlyRefuses, refusalOf } from './refusal.ts';

const WRONG_SCHEME = 'invalid destination url: endpoint has invalid scheme, add http:// or https://';

describe('a destination in the path', () => {
  it.each([
    ['https://example.com/a', 'b=c', 'https://example.com/a?b=c'],
    ['https://example.com', '', 'https://example.com'],
    ['https://example.com/', '', 'https://example.com/'],
    ['HTTPS://Example.COM/A', '', 'HTTPS://Example.COM/A'],
    ['http://h/%2F%20//./../x', 'a=%20&a=1', 'http://h/%2F%20//./../x?a=%20&a=1'],
    ['https:/example.com/a', '', 'https://example.com/a'],
    ['https://example.com/a?', '', 'https://example.com/a?'],
    ['https%3A%2F%2Fexample.com%2Fa%3Fb%3Dc?', '', 'https://example.com/a?b=c'],
    ['https%3A%2F%2Fexample.com%2Fa%3Fb%3Dc', '', 'https://example.com/a?b=c'],
    ['https%3A%2F%2Fexample.com%2Fa%3Fb%3Dc', 'd=e', 'https://example.com/a?b=c&d=e'],
    ['https%3A%2F%2Fexample.com%2Fa', 'd=e', 'https://example.com/a?d=e'],
    ['https%3A%2F%2Fexample.com%2Fa%2520b%23part', 'd=e', 'https://example.com/a%20b?d=e'],
    ['https://user:pass@example.com/', '', 'https://user:pass@example.com/'],
    ['http://[::1]:3000/x', '', 'http://[::1]:3000/x'],
    // UTF-8 sent unescaped, as Node reads it.
    ['https://example.com/\u00c3\u00a9', '', 'https://example.com/é'],
    ['https://example.com/\u00e9', '', 'https://example.com/\u00e9'],
  ])('%s with the query "%s" is the URL %s (12 to 15, 20)', (rest, query, url) => {
    expect(readDestination(rest, query)).toEqual({ kind: 'url', url });
  });

  it.each([
    ['my-group', 'my-group'],
    ['my-group?', 'my-group'],
    ['My%2DGroup', 'My-Group'],
    ['a.b_c', 'a.b_c'],
    ['__proto__', '__proto__'],
  ])('%s is the group %s, whose query is dropped', (rest, name) => {
    expect(readDestination(rest, 'x=1')).toEqual({ kind: 'group', name });
  });

  it('must not be empty (18)', () => {
    expect(refusalOf(() => readDestination('', ''))).toEqual({
      code: 'invalid_destination',
      status: 400,
      message: 'a non-empty destination must be provided',
    });
  });

  it.each([
    'example.com/x',
    'ftp://example.com/',
    'javascript:alert(1)',
    'api/llm',
    'a b',
    '%zz',
    'https:',
    'é',
    '/https://h/',
    ' https://h/',
  ])('%s has the wrong scheme (17)', (rest) => {
    expect(refusalOf(() => readDestination(rest, ''))).toMatchObject({ status: 400, message: WRONG_SCHEME });
  });
});

describe('a URL', () => {
  it.each([
    'https://',
    'http:///host/',
    'http://?x',
    'http://\\host/',
    'http://host:0/',
    'http://host:65536/',
    'http://host:port/',
    'http://a b/',
    'http://[::1/',
    'http://256.256.256.256/',
    'http://host/a\nb',
    'http://host/a\0',
    'http://host/a ',
    `http://host/${'a'.repeat(16_384 - 'http://host/'.length + 1)}`,
    `http://${'h'.repeat(254)}/`,
  ])('is not %j', (url) => {
    const refusal = refusalOf(() => checkUrl(url));
    expect(refusal.code).toBe('invalid_destination');
    expect(refusal.message).toMatch(/^invalid destination url: endpoint /);
  });

  it('may have 16,384 characters', () => {
    const url = `http://host/${'a'.repeat(16_384 - 'http://host/'.length)}`;
    expect(checkUrl(url).href).toBe(url);
  });

  it('may have a host of 253 characters', () => {
    const url = `http://${'h'.repeat(253)}/`;
    expect(checkUrl(url).href).toBe(url);
  });

  it('is returned parsed, for the address check', () => {
    expect(checkUrl('http://0x7f.1:80/x').hostname).toBe('127.0.0.1');
  });
});

describe('the destination of a batch item', () => {
  it('is used unchanged', () => {
    expect(readDestinationText('https://h/a?upstash-retries=1&b=%20')).toEqual({
      kind: 'url',
      url: 'https://h/a?upstash-retries=1&b=%20',
    });
    expect(readDestinationText('group')).toEqual({ kind: 'group', name: 'group' });
  });

  it.each(['https%3A%2F%2Fh%2F', 'https:/h/', 'a%2Db', 'host/x'])('is not decoded or repaired: %s', (text) => {
    expect(refusalOf(() => readDestinationText(text)).message).toBe(WRONG_SCHEME);
  });

  it('must not be empty', () => {
    expect(refusalOf(() => readDestinationText('')).message).toBe('a non-empty destination must be provided');
  });
});

describe('every destination', () => {
  it('that is accepted as a URL can be called, and is complete', () => {
    const path = fc.stringMatching(/^[A-Za-z0-9/._~%:@!$&'()*+,;=-]{0,30}$/);
    fc.assert(
      fc.property(fc.webAuthority({ withPort: false, withUserInfo: true }), path, (authority, rest) => {
        const url = `https://${authority}/${rest}`;
        expect(readDestination(url, '')).toEqual({ kind: 'url', url });
        expect(readDestination(encodeURIComponent(url), '')).toEqual({ kind: 'url', url });
        expect(readDestinationText(url)).toEqual({ kind: 'url', url });
      }),
    );
  });

  it('is accepted or rejected, and never fails otherwise', () => {
    const text = fc.tuple(fc.constantFrom('', 'https://', 'http:/', 'https%3A//'), fc.string({ unit: 'binary' }));
    fc.assert(
      fc.property(text, fc.string(), ([start, end], query) => {
        onlyRefuses(() => readDestination(start + end, query));
        onlyRefuses(() => readDestinationText(start + end));
      }),
    );
  });
});
