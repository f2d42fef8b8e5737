import { describe, expect, it } from 'vitest';
import {
  addHeader,
  canonicalHeaderName,
  headerMapFromRaw,
  isConnectionHeader,
  newHeaderMap,
  quoted,
  refuseUnforwardable,
  trimBlanks,
} from '../../src/protocol/headers.ts';
import { fc } from '../support/fast-check.ts';
import { headerMap, onlyRefuses, refusalOf } from './refusal.ts';

describe('header names', () => {
  it.each([
    ['content-type', 'Content-Type'],
    ['TEST-HEADER', 'Test-Header'],
    ['bypass-tunnel-reminder', 'Bypass-Tunnel-Reminder'],
    ['x-api-key', 'X-Api-Key'],
    ['X--y', 'X--Y'],
    ['x_y', 'X_y'],
    ['', ''],
    ['-a', '-A'],
    ['1a-b2', '1a-B2'],
  ])('spells %s as %s (31)', (name, canonical) => {
    expect(canonicalHeaderName(name)).toBe(canonical);
  });

  it('spells every name in the same way', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9_-]{0,30}$/), (name) => {
        const canonical = canonicalHeaderName(name);
        expect(canonicalHeaderName(canonical)).toBe(canonical);
        expect(canonicalHeaderName(name.toUpperCase())).toBe(canonical);
        expect(canonical.toLowerCase()).toBe(name.toLowerCase());
      }),
    );
  });

  it('does not change letters beyond ASCII', () => {
    expect(canonicalHeaderName('ßa-İb')).toBe('ßa-İb');
  });

  it('works with more different names than the cache holds', () => {
    for (let i = 0; i < 3000; i++) expect(canonicalHeaderName(`x-n${i}`)).toBe(`X-N${i}`);
  });
});

describe('a header map', () => {
  it('merges lines of one name in their order, whatever their letter case', () => {
    expect(headerMapFromRaw(['x-a', '1', 'X-B', '2', 'X-A', '3'])).toEqual(
      headerMap({ 'X-A': ['1', '3'], 'X-B': ['2'] }),
    );
  });

  it('treats names such as __proto__ and constructor as ordinary names', () => {
    const map = newHeaderMap();
    addHeader(map, '__proto__', 'a');
    addHeader(map, 'constructor', 'b');
    expect(Object.getPrototypeOf(map)).toBeNull();
    expect(Object.keys(map)).toEqual(['__proto__', 'Constructor']);
  });
});

describe('a header that HTTP cannot carry', () => {
  it.each(['__proto__', '__PROTO__', 'a b', 'a:b', 'é', 'a\r\nb', ''])('is refused by its name: %j', (name) => {
    const refusal = refusalOf(() => refuseUnforwardable(`Upstash-Forward-${name}`, name, ['v']));
    expect(refusal).toMatchObject({ code: 'invalid_header', status: 400 });
    expect(refusal.message).toContain('Upstash-Forward-');
  });

  it.each(['a\rb', 'a\nb', 'a\0b', '\u0001', '\u007f', 'œ', '漢', '\ud800'])('is refused by its value: %j', (value) => {
    expect(refusalOf(() => refuseUnforwardable('Upstash-Forward-X', 'X', ['fine', value])).message).toMatch(
      /^invalid Upstash-Forward-X: /,
    );
  });

  it('does not include tabs, Latin-1 or an unusual token as its name', () => {
    expect(() => refuseUnforwardable('Upstash-Forward-X', "x!#$%&'*+.^_`|~1", ['a\tb', 'ÿ\u0080', ''])).not.toThrow();
  });

  it('is recognised by its lower-case name', () => {
    expect(isConnectionHeader('te')).toBe(true);
    expect(isConnectionHeader('x-te')).toBe(false);
    expect(isConnectionHeader('constructor')).toBe(false);
  });

  it('throws only an ApiError', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.array(fc.string({ unit: 'binary' })), (name, values) =>
        onlyRefuses(() => refuseUnforwardable(`Upstash-Forward-${name}`, name, values)),
      ),
    );
  });
});

describe('text around header values', () => {
  it('is trimmed of blanks and tabs, and keeps the bytes of a UTF-8 letter', () => {
    expect(trimBlanks(' \ta b\t ')).toBe('a b');
    expect(trimBlanks('  ')).toBe('');
    expect(trimBlanks('\u00c3\u00a0')).toBe('\u00c3\u00a0');
  });

  it('is quoted, escaped and truncated in errors', () => {
    expect(quoted('a"\n')).toBe('"a\\"\\n"');
    expect(quoted('x'.repeat(100))).toHaveLength(67);
  });
});
