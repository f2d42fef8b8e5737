import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { base64OfBytes, jsonWithBase64, textOrBase64 } from '../../src/protocol/bodies.ts';
import { decodeCursor, encodeCursor } from '../../src/protocol/cursor.ts';
import { checkName, isName } from '../../src/protocol/names.ts';
import { hasConfigPrefix } from '../../src/protocol/options/config-names.ts';
import { contentHash, contentHashInChunks, explicitHash } from '../../src/protocol/options/deduplication.ts';
import { deliveryHeaderName, prefixOf, userAgent } from '../../src/protocol/options/dialect.ts';
import { parseFlowControl } from '../../src/protocol/options/flow-control.ts';
import { parseLabels } from '../../src/protocol/options/option-values.ts';
import {
  mergeRedactions,
  parseRedaction,
  redactConfigHeaders,
  redactDefaults,
  redactedText,
  redactHeaderMap,
} from '../../src/protocol/redaction.ts';
import { fc } from '../support/fast-check.ts';
import { headerMap, onlyRefuses, refusalOf } from './refusal.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('a name', () => {
  it('has 1 to 255 letters, digits, hyphens, periods and underscores', () => {
    for (const name of ['a', 'A-b_c.9', '__proto__', '.', 'a'.repeat(255)]) expect(isName(name)).toBe(true);
    for (const name of ['', 'a b', 'a/b', 'é', 'a\n', 'a'.repeat(256)]) expect(isName(name)).toBe(false);
  });

  it('is refused with the documented text (102)', () => {
    expect(refusalOf(() => checkName('queue name', 'a b'))).toEqual({
      code: 'invalid_name',
      status: 400,
      message: 'invalid queue name a b: only letters, digits, hyphen, period and underscore are allowed',
    });
  });

  it('is rejected if it is empty, and quoted up to 64 characters', () => {
    const told = (name: string) => refusalOf(() => checkName('label', name)).message;
    expect(told('')).toBe('invalid label: it must not be empty');
    expect(told(`${'a'.repeat(63)} `)).toContain(` ${'a'.repeat(63)} : `);
    expect(told(`${'a'.repeat(64)} `)).toContain(` ${'a'.repeat(64)}…: `);
  });

  it('is rejected with the name of its header', () => {
    expect(refusalOf(() => checkName('schedule id', 'a'.repeat(256), 'Upstash-Schedule-Id')).message).toBe(
      `invalid schedule id ${'a'.repeat(64)}…: at most 255 characters are allowed (Upstash-Schedule-Id)`,
    );
  });
});

describe('labels', () => {
  it.each([
    ['a,b', ['a', 'b']],
    [' a , b\t,a,,c,', ['a', 'b', 'c']],
    [',', []],
  ])('%j are %j (35)', (text, labels) => {
    expect(parseLabels(text, 'Upstash-Label')).toEqual(labels);
  });

  it('are rejected if they are not valid names', () => {
    const { message } = refusalOf(() => parseLabels('a,b c', 'Upstash-Label'));
    expect(message).toMatch(/^invalid label b c: only letters/);
    expect(message).toContain('Upstash-Label');
  });
});

describe('flow control', () => {
  it.each([
    ['parallelism=3, rate=4, period=2s', { parallelism: 3, rate: 4, periodS: 2 }],
    ['parallelism=3', { parallelism: 3, periodS: 1 }],
    ['parallelism=120,rate=25', { parallelism: 120, rate: 25, periodS: 1 }],
    ['rate = 5 ,period = 1h30m3s', { rate: 5, periodS: 5403 }],
    ['period=7d,rate=1', { rate: 1, periodS: 604_800 }],
    ['rate=1,period=1500ms', { rate: 1, periodS: 2 }],
    ['rate=1,period=60', { rate: 1, periodS: 60 }],
    ['rate=1,period=1ms', { rate: 1, periodS: 1 }],
  ])('%s (141)', (value, expected) => {
    expect(parseFlowControl('my.key', value)).toEqual({ key: 'my.key', ...expected });
  });

  it.each(['period=1s', 'rate', 'x=1', 'rate=1,', 'rate=1,rate=2', 'RATE=1', '=', 'constructor=1', 'rate:1'])(
    '%j has the wrong shape (142)',
    (value) => {
      expect(refusalOf(() => parseFlowControl('k', value))).toEqual({
        code: 'invalid_header',
        status: 400,
        message:
          'Upstash-Flow-Control-Value should be either rate=X or parallelism=Y, or both as comma-separated values',
      });
    },
  );

  it.each([
    'rate=0',
    'rate=-1',
    'rate=1.5',
    'rate=+1',
    'rate=1e3',
    'rate=0x10',
    'rate=',
    'parallelism=x',
    'parallelism=99999999999999999999',
    'rate=1,period=0',
    'rate=1,period=8d',
    'rate=1,period=604801s',
    'rate=1,period=soon',
    'rate=1,period=',
  ])('%j has a bad number or period', (value) => {
    const { message, status } = refusalOf(() => parseFlowControl('k', value));
    expect(status).toBe(400);
    expect(message).toMatch(/^invalid Upstash-Flow-Control-Value: (rate|parallelism|period) must be/);
  });

  it('needs a key that is a name', () => {
    expect(refusalOf(() => parseFlowControl('a b', 'rate=1')).message).toMatch(
      /^invalid flow control key a b: .*Upstash-Flow-Control-Key/,
    );
  });

  it('accepts or rejects any text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[ratepiod=0-9smh, ]{0,30}$/)), (value) =>
        onlyRefuses(() => parseFlowControl('k', value)),
      ),
    );
  });
});

describe('a config header', () => {
  it.each(['Upstash-Retries', 'WAYPOST-x', 'upstash-', 'waypost-'])('is recognised by its prefix: %s', (name) => {
    expect(hasConfigPrefix(name)).toBe(true);
  });

  it.each(['Upgrade-Insecure-Requests', 'Webhook-Id', 'Upstash', 'Upstashed-X', 'Waypost_X', 'X-Upstash-Retries', ''])(
    'is not what only looks like one: %s',
    (name) => {
      expect(hasConfigPrefix(name)).toBe(false);
    },
  );
});

describe('redaction', () => {
  it.each([
    ['body', { body: true, headers: [] }],
    ['body, header', { body: true, headers: 'all' }],
    ['headers', { body: false, headers: 'all' }],
    [
      'header[x-api-KEY],headers[ Authorization ], header[X-Api-Key]',
      { body: false, headers: ['X-Api-Key', 'Authorization'] },
    ],
    ['header[a],header,', { body: false, headers: 'all' }],
    ['header[__proto__]', { body: false, headers: ['__proto__'] }],
  ])('reads %s (149)', (text, redaction) => {
    expect(parseRedaction(text)).toEqual(redaction);
  });

  it.each(['url', 'Body', 'header[]', 'header[a', 'header[a]]', 'header[a:b]', 'xheader[a]', ',', 'constructor'])(
    'refuses %j',
    (text) => {
      expect(refusalOf(() => parseRedaction(text)).message).toMatch(/^invalid Upstash-Redact-Fields: /);
    },
  );

  it('shows the SHA-256 of the original bytes in hex (148)', () => {
    expect(redactedText(bytes('hello'))).toBe(
      'REDACTED:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824',
    );
  });

  it('hides each value of the named headers, or of all', () => {
    const map = headerMap({ 'X-A': ['hello', 'b'], 'X-B': ['\u00e9'] });
    const hidden = redactedText(bytes('hello'));
    expect(redactHeaderMap(map, { body: true, headers: ['X-A'] })).toEqual(
      headerMap({ 'X-A': [hidden, redactedText(bytes('b'))], 'X-B': ['\u00e9'] }),
    );
    expect(redactHeaderMap(map, { body: false, headers: 'all' })['X-B']).toEqual([redactedText(Uint8Array.of(0xe9))]);
    for (const none of [{ body: true, headers: [] }, undefined]) expect(redactHeaderMap(map, none)).toEqual(map);
    expect(map['X-A']).toEqual(['hello', 'b']);
  });

  it('shows a header value as UTF-8 if its bytes are valid UTF-8, and as Latin-1 otherwise', () => {
    const map = headerMap({ 'X-Name': ['Zo\xc3\xab', 'Zo\xeb', '\xe2\x82\xac', 'plain'] });
    expect(redactHeaderMap(map)).toEqual(headerMap({ 'X-Name': ['Zoë', 'Zoë', '€', 'plain'] }));
  });

  it('merged with another hides everything that either hides', () => {
    const named = { body: false, headers: ['X-A', 'X-B'] };
    expect(mergeRedactions(undefined, named)).toBe(named);
    expect(mergeRedactions(named, { body: true, headers: ['X-B', 'X-C'] })).toEqual({
      body: true,
      headers: ['X-A', 'X-B', 'X-C'],
    });
    const all = { body: false, headers: 'all' as const };
    expect([mergeRedactions(named, all), mergeRedactions(all, named)]).toEqual([all, all]);
    expect(mergeRedactions({ body: true, headers: [] }, all)).toEqual({ body: true, headers: 'all' });
  });

  it('hides headers to forward among config headers by their delivered names', () => {
    const map = headerMap({
      'Upstash-Retries': ['3'],
      'Upstash-Forward-X-A': ['hello'],
      'Upstash-Callback-Forward-X-B': ['there'],
      'X-A': ['hello'],
      'X-B': ['there'],
    });
    const hidden = redactedText(bytes('hello'));
    expect(redactConfigHeaders(map, { body: false, headers: ['X-A', 'Retries'] })).toEqual(
      headerMap({ ...map, 'Upstash-Forward-X-A': [hidden], 'X-A': [hidden] }),
    );
    const there = redactedText(bytes('there'));
    expect(redactConfigHeaders(map, { body: false, headers: 'all' })).toEqual(
      headerMap({
        'Upstash-Retries': ['3'],
        'Upstash-Forward-X-A': [hidden],
        'Upstash-Callback-Forward-X-B': [there],
        'X-A': [hidden],
        'X-B': [there],
      }),
    );
    expect(redactConfigHeaders(map, undefined)).toEqual(map);
  });

  it('hides in defaults everything that any of their lists names, including those for callbacks', () => {
    const defaults = headerMap({
      'Redact-Fields': ['header[X-C]'],
      'Upstash-Redact-Fields': ['header[X-A]'],
      'Waypost-Callback-Redact-Fields': ['header[X-B]'],
      'Upstash-Forward-X-A': ['hello'],
      'Upstash-Forward-X-B': ['hello'],
      'Upstash-Forward-X-C': ['hello'],
    });
    const hidden = redactedText(bytes('hello'));
    expect(redactDefaults(defaults)).toEqual(
      headerMap({ ...defaults, 'Upstash-Forward-X-A': [hidden], 'Upstash-Forward-X-B': [hidden] }),
    );
    const open = headerMap({ 'Upstash-Forward-X-A': ['hello'], 'Upstash-Retries': ['1'] });
    expect(redactDefaults(open)).toEqual(open);
  });
});

describe('content-based deduplication', () => {
  const content = {
    destination: 'https://h/',
    body: bytes('b'),
    header: headerMap({ 'Content-Type': ['text/plain'], 'X-A': ['1', '2'] }),
  };

  it('recognises equal content in any order of headers (81)', () => {
    const header = headerMap({ 'X-A': ['1', '2'], 'Content-Type': ['text/plain'] });
    expect(contentHash({ ...content, header })).toBe(contentHash(content));
    expect(contentHash(content)).toMatch(/^[\w-]{43}$/);
  });

  it.each([
    ['destination', { destination: 'https://h/x' }],
    ['body', { body: bytes('c') }],
    ['content type', { header: headerMap({ 'Content-Type': ['text/html'], 'X-A': ['1', '2'] }) }],
    ['forwarded header', { header: headerMap({ 'Content-Type': ['text/plain'], 'X-A': ['1'] }) }],
    ['order of values', { header: headerMap({ 'Content-Type': ['text/plain'], 'X-A': ['2', '1'] }) }],
    ['joined values', { header: headerMap({ 'Content-Type': ['text/plain'], 'X-A': ['1,2'] }) }],
    ['endpoint', { endpointUrl: 'https://e/' }],
  ])('distinguishes another %s (81)', (_, change) => {
    expect(contentHash({ ...content, ...change })).not.toBe(contentHash(content));
  });

  it('has the same hash if it is computed in chunks, between which other work runs', async () => {
    const body = new Uint8Array(2.5 * 1024 * 1024).fill(7);
    let turns = 0;
    const inPieces = contentHashInChunks({ ...content, body }, async () => {
      turns += 1;
    });
    expect([await inPieces, turns]).toEqual([contentHash({ ...content, body }), 3]);
  });

  it('never confuses one part of the content with another', () => {
    const part = fc.string({ unit: fc.constantFrom('a', '"', '[', ']', ',', '\\', ':'), maxLength: 5 });
    const any = fc.record({ destination: part, body: part, name: part, value: part });
    const hashOf = (c: { destination: string; body: string; name: string; value: string }): string =>
      contentHash({ destination: c.destination, body: bytes(c.body), header: headerMap({ [c.name]: [c.value] }) });
    fc.assert(
      fc.property(any, any, (a, b) => {
        expect(hashOf(a) === hashOf(b)).toBe(JSON.stringify(a) === JSON.stringify(b));
      }),
    );
  });

  it('never collides with explicit ids', () => {
    expect(explicitHash('x')).toBe(explicitHash('x'));
    expect(explicitHash('x')).not.toBe(explicitHash('y'));
    expect(explicitHash('x')).not.toBe(explicitHash('x', 'https://e/'));
    expect(explicitHash('x')).toBe(createHash('sha256').update('["id","x",null]').digest('base64url'));
  });
});

describe('bytes in JSON', () => {
  it('are text if they are UTF-8, otherwise base64, and absent if empty (32)', () => {
    expect(textOrBase64(bytes('hé"'))).toEqual({ text: 'hé"' });
    expect(textOrBase64(Uint8Array.of(0xff, 0xfe))).toEqual({ base64: '//4=' });
    expect(textOrBase64(new Uint8Array())).toBeUndefined();
    expect(base64OfBytes(new Uint8Array())).toBe('');
  });

  it('can be added to any object, with or without members', () => {
    const names = fc.constantFrom('out', '"}', 'é');
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.string()), names, fc.uint8Array(), (members, name, some) => {
        const json = Buffer.from(jsonWithBase64(members, name, some)).toString();
        expect(JSON.parse(json)).toEqual({ ...members, [name]: base64OfBytes(some) });
      }),
    );
  });

  it('are decoded unchanged, including a byte order mark and a view into a larger buffer', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1 }), (some) => {
        const shown = textOrBase64(Uint8Array.of(1, ...some, 2).subarray(1, -1)) ?? { text: '' };
        const back = 'text' in shown ? Buffer.from(shown.text) : Buffer.from(shown.base64, 'base64');
        expect([...back]).toEqual([...some]);
      }),
    );
    expect(textOrBase64(Uint8Array.of(0xef, 0xbb, 0xbf, 0x61))).toEqual({ text: '\ufeffa' });
  });
});

describe('a cursor', () => {
  it('is decoded to the same position', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), fc.maxSafeNat(), (ms, n) => {
        expect(decodeCursor(encodeCursor(ms, n))).toEqual({ ms, n });
      }),
    );
  });

  it('may be a plain time', () => {
    expect(decodeCursor('1686652644442')).toEqual({ ms: 1_686_652_644_442, n: undefined });
  });

  it.each([
    '',
    '-',
    '1-',
    '-1',
    '1-2-3',
    'a-1',
    '1.5-0',
    ' 1-0',
    '1-0\n',
    '9007199254740992',
    '1-9007199254740992',
    '0x1-1',
  ])('is not %j', (text) => {
    expect(decodeCursor(text)).toBeUndefined();
  });
});

describe('the two dialects', () => {
  it('differ in prefix, issuer and user agent (39)', () => {
    expect(deliveryHeaderName('upstash', 'Message-Id')).toBe('Upstash-Message-Id');
    expect(deliveryHeaderName('waypost', 'Signature')).toBe('Waypost-Signature');
    expect([prefixOf('upstash'), userAgent('upstash')]).toEqual(['Upstash', 'Upstash-QStash']);
    expect([prefixOf('waypost'), userAgent('waypost')]).toEqual(['Waypost', 'Waypost']);
  });
});
