import { describe, expect, it } from 'vitest';
import { itemRawHeaders } from '../../src/protocol/options/options.ts';
import { fc } from '../support/fast-check.ts';
import { messageOf, read } from './reading.ts';
import { headerMap, onlyRefuses, refusalOf } from './refusal.ts';

describe('a publish without options', () => {
  it('has the defaults of the contract (26)', () => {
    expect(read(['Host', 'server', 'Authorization', 'Bearer t', 'User-Agent', 'x'])).toEqual({
      method: 'POST',
      header: headerMap({}),
      explicitHeader: headerMap({}),
      settings: { dialect: 'upstash', maxRetries: 3 },
    });
  });

  it('ignores telemetry, unknown options and empty values (11)', () => {
    const options = read([
      'Upstash-Telemetry-Sdk',
      'x',
      'Upstash-Foo',
      'x',
      'Upstash-',
      'x',
      'Upstash-Retries',
      ' ',
      'Upstash-Delay',
      '',
      'Upstash-Constructor',
      'x',
      'Upstash-__proto__',
      'x',
      'Upstash-Callback-',
      'x',
    ]);
    expect(options).toEqual(read([]));
  });
});

describe('the options of a message', () => {
  it('are all read', () => {
    const options = read([
      'Content-Type',
      'text/plain',
      'Upstash-Method',
      'put',
      'Upstash-Forward-X-Y',
      'v',
      'Upstash-Timeout',
      '1m',
      'Upstash-Retries',
      '0',
      'Upstash-Retry-Delay',
      ' 1000  * retried ',
      'Upstash-Delay',
      '1d1h30m',
      'Upstash-Deduplication-Id',
      'once',
      'Upstash-Callback',
      'https://cb/',
      'Upstash-Failure-Callback',
      'https://fail/',
      'Upstash-Label',
      'a,b',
      'Upstash-Flow-Control-Key',
      'k',
      'Upstash-Flow-Control-Value',
      'parallelism=2',
      'Upstash-Redact-Fields',
      'body,header[x-y]',
    ]);
    const header = headerMap({ 'X-Y': ['v'], 'Content-Type': ['text/plain'] });
    expect(options).toEqual({
      method: 'PUT',
      header,
      explicitHeader: header,
      delayMs: 91_800_000,
      deduplication: { by: 'id', id: 'once' },
      settings: {
        dialect: 'upstash',
        maxRetries: 0,
        timeoutMs: 60_000,
        retryDelayExpression: '1000  * retried',
        callback: { url: 'https://cb/', method: 'POST', header: headerMap({}) },
        failureCallback: { url: 'https://fail/', method: 'POST', header: headerMap({}) },
        labels: ['a', 'b'],
        flowControl: { key: 'k', parallelism: 2, periodS: 1 },
        redact: { body: true, headers: ['X-Y'] },
      },
    });
  });

  it.each([
    ['Upstash-Method', 'HEAD'],
    ['Upstash-Header-Forward', 'yes'],
    ['Upstash-Timeout', 'abc'],
    ['Upstash-Timeout', '0s'],
    ['Upstash-Timeout', '-1'],
    ['Upstash-Retries', 'abc'],
    ['Upstash-Retries', '-1'],
    ['Upstash-Retries', '+1'],
    ['Upstash-Retries', '1.5'],
    ['Upstash-Retries', '0x1'],
    ['Upstash-Retry-Delay', '1000 *'],
    ['Upstash-Retry-Delay', 'process.exit()'],
    ['Upstash-Delay', 'abc'],
    ['Upstash-Not-Before', '1.5'],
    ['Upstash-Not-Before', 'tomorrow'],
    ['Upstash-Deduplication-Id', 'x'.repeat(256)],
    ['Upstash-Content-Based-Deduplication', '1'],
    ['Upstash-Callback', 'example.com'],
    ['Upstash-Callback', 'my-group'],
    ['Upstash-Callback', 'http://host:99999/'],
    ['Upstash-Failure-Callback', 'ftp://x/'],
    ['Upstash-Label', 'a b'],
    ['Upstash-Flow-Control-Key', 'k'],
    ['Upstash-Flow-Control-Value', 'rate=1'],
    ['Upstash-Redact-Fields', 'url'],
    ['Upstash-Callback-Retries', 'x'],
    ['Upstash-Failure-Callback-Timeout', 'x'],
    ['Upstash-Callback-Failure-Callback-Retry-Delay', 'x'],
  ])('refuse %s: %s with 400 and name the header (28, 34, 56, 86)', (name, value) => {
    for (const spelt of [name, name.toLowerCase(), name.replace('Upstash', 'WAYPOST')]) {
      const refusal = refusalOf(() => read([spelt, value]));
      expect(refusal.status).toBe(400);
      expect(refusal.message).toContain(spelt.startsWith('WAYPOST') ? name.replace('Upstash', 'Waypost') : name);
    }
  });

  it('reject a colon in a deduplication id with the documented text (82)', () => {
    expect(refusalOf(() => read(['Upstash-Deduplication-Id', 'a:b']))).toEqual({
      code: 'invalid_header',
      status: 400,
      message: "DeduplicationId cannot contain ':'",
    });
  });

  it('accept booleans in any letter case (83)', () => {
    expect(read(['Upstash-Content-Based-Deduplication', 'True']).deduplication).toEqual({ by: 'content' });
    expect(read(['Upstash-Content-Based-Deduplication', 'FALSE']).deduplication).toBeUndefined();
  });

  it('prefer an explicit deduplication id to the content', () => {
    const both = ['Upstash-Content-Based-Deduplication', 'true', 'Upstash-Deduplication-Id', 'x'];
    expect(read(both).deduplication).toEqual({ by: 'id', id: 'x' });
  });

  it('name the missing half of flow control', () => {
    expect(messageOf(['Upstash-Flow-Control-Key', 'k'])).toBe(
      'invalid Upstash-Flow-Control-Key: needs Upstash-Flow-Control-Value',
    );
    expect(messageOf(['waypost-flow-control-value', 'rate=1'])).toBe(
      'invalid Waypost-Flow-Control-Value: needs Waypost-Flow-Control-Key',
    );
  });

  it('reduce a timeout to the maximum, if there is one', () => {
    expect(read(['Upstash-Timeout', '3h']).settings.timeoutMs).toBe(7_200_000);
    expect(read(['Upstash-Timeout', '3h'], { quotas: { timeoutMsMax: 0 } }).settings.timeoutMs).toBe(10_800_000);
  });
});

describe('quotas', () => {
  it.each(['11', '1000000', '9'.repeat(30)])('refuse %s retries with 412 (29)', (retries) => {
    expect(refusalOf(() => read(['Upstash-Retries', retries]))).toEqual({
      code: 'quota_exceeded',
      status: 412,
      message: 'quota maxRetries exceeded, current limit: 10',
    });
  });

  it.each([
    ['Upstash-Delay', '604800s1ms'],
    ['Upstash-Not-Before', '1700604801'],
    ['Upstash-Not-Before', '9'.repeat(30)],
  ])('refuse %s: %s with 412 (87)', (name, value) => {
    expect(refusalOf(() => read([name, value]))).toMatchObject({
      status: 412,
      message: 'quota maxDelay exceeded, current limit: 604800',
    });
  });

  it('allow exactly the limit', () => {
    expect(read(['Upstash-Retries', '10']).settings.maxRetries).toBe(10);
    expect(read(['Upstash-Delay', '7d']).delayMs).toBe(604_800_000);
    expect(read(['Upstash-Not-Before', '1700604800']).notBeforeMs).toBe(1_700_604_800_000);
  });

  it('of 0 allow every countable number', () => {
    const unlimited = { quotas: { retriesMax: 0, delayMsMax: 0 } };
    expect(read(['Upstash-Retries', '1000000'], unlimited).settings.maxRetries).toBe(1_000_000);
    expect(read(['Upstash-Delay', '36500d'], unlimited).delayMs).toBe(3_153_600_000_000);
    for (const name of ['Upstash-Retries', 'Upstash-Not-Before']) {
      expect(refusalOf(() => read([name, '9'.repeat(30)], unlimited)).message).toMatch(
        new RegExp(`^invalid ${name}: `),
      );
    }
    expect(messageOf(['Upstash-Not-Before', '9000000000000'], unlimited)).toMatch(/^invalid Upstash-Not-Before: /);
    expect(messageOf(['Upstash-Delay', `${Number.MAX_SAFE_INTEGER}ms`], unlimited)).toMatch(/^invalid Upstash-Delay: /);
  });

  it('apply to callbacks too', () => {
    expect(messageOf(['Upstash-Callback', 'https://cb/', 'Upstash-Callback-Retries', '11'])).toMatch(/maxRetries/);
  });

  it('are reported after all other errors', () => {
    expect(messageOf(['Upstash-Retries', '11', 'Upstash-Delay', '8d', 'Upstash-Label', '?'])).toMatch(/^invalid label/);
    expect(messageOf(['Upstash-Delay', '8d', 'Upstash-Retries', '11'])).toMatch(/maxRetries/);
  });
});

describe('delay and not-before', () => {
  it('are in seconds and milliseconds, and not-before takes precedence (84, 85)', () => {
    expect(read(['Upstash-Delay', '2s'])).toMatchObject({ delayMs: 2000 });
    const both = read(['Upstash-Delay', '8d', 'Upstash-Not-Before', '1700000060']);
    expect(both.notBeforeMs).toBe(1_700_000_060_000);
    expect(both).not.toHaveProperty('delayMs');
  });

  it('may be zero or past', () => {
    expect(read(['Upstash-Delay', '0']).delayMs).toBe(0);
    expect(read(['Upstash-Not-Before', '0']).notBeforeMs).toBe(0);
  });

  it.each(['Upstash-Delay', 'Upstash-Not-Before', 'Waypost-Delay'])('%s is refused for queues (88)', (name) => {
    expect(refusalOf(() => read([name, '1'], { context: 'enqueue' }))).toMatchObject({
      status: 400,
      message: `${name} is not supported for queues`,
    });
  });

  it('shift schedules only by a delay', () => {
    expect(read(['Upstash-Delay', '1', 'Upstash-Cron', '@daily'], { context: 'schedule' }).delayMs).toBe(1000);
    expect(messageOf(['Upstash-Not-Before', '1'], { context: 'schedule' })).toBe(
      'Upstash-Not-Before is not supported for schedules',
    );
  });
});

describe('a schedule', () => {
  it('carries its expression, id and queue, and is never deduplicated', () => {
    const rawHeaders = ['Upstash-Cron', ' * * * * * ', 'Upstash-Schedule-Id', 'my-id', 'Upstash-Queue-Name', 'q'];
    rawHeaders.push('Upstash-Deduplication-Id', 'a:b');
    for (const context of ['publish', 'schedule'] as const) {
      const options = read(rawHeaders, { context });
      expect(options).toMatchObject({ cron: '* * * * *', scheduleId: 'my-id', scheduleQueueName: 'q' });
      expect(options).not.toHaveProperty('deduplication');
    }
  });

  it('is rejected without an expression, and with one that is malformed or never occurs (121)', () => {
    const cron = (value: string) => messageOf(['Upstash-Cron', value], { context: 'schedule' });
    expect(messageOf([], { context: 'schedule' })).toBe('Invalid cron expression empty spec string');
    expect(cron(' ')).toBe('Invalid cron expression empty spec string');
    expect(cron('* * * *')).toBe('Invalid cron expression expected exactly 5 fields, found 4: [* * * *]');
    expect(cron('0 0 30 2 *')).toBe('Invalid cron expression it never occurs');
  });

  it('has options for missed times and overlapping triggers', () => {
    const rawHeaders = [
      'Upstash-Cron',
      '@daily',
      'Waypost-Schedule-Catch-Up',
      'All',
      'Waypost-Schedule-Overlap',
      'skip',
    ];
    expect(read(rawHeaders)).toMatchObject({ scheduleCatchUp: 'all', scheduleOverlap: 'skip' });
    expect(messageOf(['Upstash-Cron', '@daily', 'Waypost-Schedule-Catch-Up', 'two'])).toBe(
      'invalid Waypost-Schedule-Catch-Up: must be skip, one or all, not "two"',
    );
    expect(messageOf(['Upstash-Cron', '@daily', 'Waypost-Schedule-Overlap', 'maybe'])).toBe(
      'invalid Waypost-Schedule-Overlap: must be allow or skip, not "maybe"',
    );
  });

  it('requires valid names', () => {
    const cron = ['Upstash-Cron', '* * * * *'];
    expect(messageOf([...cron, 'Upstash-Schedule-Id', 'a/b'])).toMatch(
      /^invalid schedule id a\/b: .*Upstash-Schedule-Id/,
    );
    expect(messageOf([...cron, 'Upstash-Queue-Name', 'a b'])).toMatch(/^invalid queue name a b: .*Upstash-Queue-Name/);
  });

  it('is created by a publish with its headers, and rejected on an enqueue', () => {
    expect(read(['Upstash-Schedule-Id', 'a/b', 'Upstash-Queue-Name', '?'])).toEqual(read([]));
    expect(() => read(['Upstash-Cron', '* * * * *'], { context: 'enqueue' })).toThrow(
      'Upstash-Cron is not supported for queues',
    );
  });
});

describe('a header that is no option', () => {
  it.each(['Website-Retries', 'Uploads-Retries'])('is not mistaken for an option: %s', (name) => {
    expect(read([name, '7'])).toEqual(read([]));
  });

  it('is not mistaken for the content type, although its name has the same length', () => {
    expect(read(['X-Request-Id', 'a/b'])).toEqual(read([]));
  });
});

describe('precedence', () => {
  it('is header, then query, then group default, option by option', () => {
    const queryConfig: [string, string][] = [
      ['upstash-retries', '2'],
      ['upstash-timeout', '2s'],
    ];
    const groupDefaults = headerMap({
      'Upstash-Retries': ['1'],
      'Upstash-Timeout': ['1s'],
      'Upstash-Label': ['group'],
    });
    const { settings } = read(['Upstash-Retries', '4'], { queryConfig, groupDefaults });
    expect(settings).toMatchObject({ maxRetries: 4, timeoutMs: 2000, labels: ['group'] });
  });

  it('merges forwarded headers by name', () => {
    const { header } = read(['Upstash-Forward-A', 'h1', 'Upstash-Forward-A', 'h2'], {
      queryConfig: [
        ['upstash-forward-a', 'q'],
        ['upstash-forward-b', 'q'],
      ],
      groupDefaults: headerMap({ 'Upstash-Forward-B': ['g'], 'Upstash-Forward-C': ['g1', 'g2'] }),
    });
    expect(header).toEqual(headerMap({ A: ['h1', 'h2'], B: ['q'], C: ['g1', 'g2'] }));
  });

  it('uses the first of several values, and Upstash- of the two dialects', () => {
    expect(read(['Upstash-Retries', '1', 'Upstash-Retries', '2']).settings.maxRetries).toBe(1);
    expect(read(['Waypost-Retries', '1', 'Upstash-Retries', '2']).settings.maxRetries).toBe(2);
    expect(read(['Waypost-Forward-A', 'w', 'Upstash-Forward-A', 'u']).header['A']).toEqual(['u']);
  });

  it('applies to the content type, and a blank one counts as absent', () => {
    const groupDefaults = headerMap({ 'Content-Type': ['group/a', 'group/b'] });
    const typeOf = (...types: string[]) =>
      read(
        types.flatMap((type) => ['content-type', type]),
        { groupDefaults },
      ).header['Content-Type'];
    expect([typeOf('own/a', 'own/b'), typeOf(' '), typeOf(' ', 'own/b'), typeOf()]).toEqual([
      ['own/a'],
      ['group/a'],
      ['own/b'],
      ['group/a'],
    ]);
    expect(read(['Content-Type', ' ']).header).toEqual(headerMap({}));
  });

  it('allows a default to forward all headers', () => {
    const groupDefaults = headerMap({ 'Upstash-Header-Forward': ['true'] });
    expect(read(['X-Event', 'e'], { groupDefaults }).header).toEqual(headerMap({ 'X-Event': ['e'] }));
  });
});

describe('the dialect', () => {
  it.each([
    [[], 'upstash'],
    [['Waypost-Retries', '1'], 'waypost'],
    [['waypost-forward-a', '1', 'Upstash-Telemetry-Sdk', 'x'], 'waypost'],
    [['Waypost-Retries', '1', 'Upstash-Method', 'POST'], 'upstash'],
    [['Upstash-Retries', '1'], 'upstash'],
  ])('of %j is %s', (rawHeaders, dialect) => {
    expect(read(rawHeaders).settings.dialect).toBe(dialect);
  });

  it('is also determined by the query, but not by a group default', () => {
    expect(read([], { queryConfig: [['waypost-retries', '1']] }).settings.dialect).toBe('waypost');
    expect(read([], { groupDefaults: headerMap({ 'Waypost-Retries': ['1'] }) }).settings.dialect).toBe('upstash');
  });
});

describe('the order of checks', () => {
  const wrong: [string, string][] = [
    ['Upstash-Method', '?'],
    ['Upstash-Header-Forward', '?'],
    ['Upstash-Timeout', '?'],
    ['Upstash-Retries', '?'],
    ['Upstash-Retry-Delay', '?'],
    ['Upstash-Delay', '?'],
    ['Upstash-Not-Before', '?'],
    ['Upstash-Content-Based-Deduplication', '?'],
    ['Upstash-Callback', '?'],
    ['Upstash-Failure-Callback', '?'],
    ['Upstash-Label', '?'],
    ['Upstash-Flow-Control-Key', '?'],
    ['Upstash-Redact-Fields', '?'],
  ];

  it.each(wrong.map(([name], i) => [name, i] as const))(
    'reports %s before all that come later in the contract',
    (name, i) => {
      // Sent backwards, so that it is not the order of arrival.
      expect(messageOf(wrong.slice(i).reverse().flat())).toContain(name);
    },
  );
});

describe('the headers of a batch item', () => {
  it('become a flat list', () => {
    expect(itemRawHeaders({ 'upstash-retries': '1', 'X-A': ['a', 'b'], 'X-B': [] })).toEqual([
      'upstash-retries',
      '1',
      'X-A',
      'a',
      'X-A',
      'b',
    ]);
    expect(itemRawHeaders(undefined)).toEqual([]);
    expect(itemRawHeaders(null)).toEqual([]);
  });

  it('may have the name __proto__ in JSON', () => {
    expect(itemRawHeaders(JSON.parse('{"__proto__":"x"}'))).toEqual(['__proto__', 'x']);
  });

  it.each([
    [[]],
    ['x'],
    [1],
    [true],
    [{ a: 1 }],
    [{ a: null }],
    [{ a: ['x', 2] }],
    [{ a: { b: 'c' } }],
    [{ a: [['x']] }],
  ])('are not %j', (headers) => {
    expect(refusalOf(() => itemRawHeaders(headers))).toMatchObject({ code: 'invalid_body', status: 400 });
  });
});

describe('any request', () => {
  const part = fc.constantFrom(
    ...['upstash', 'waypost', 'callback', 'failure', 'forward', 'header', 'retries', 'retry', 'delay', 'timeout'],
    ...[
      'not',
      'before',
      'label',
      'flow',
      'control',
      'key',
      'value',
      'redact',
      'fields',
      'method',
      '__proto__',
      'cron',
      '',
    ],
  );
  const name = fc.oneof(
    fc.array(part, { maxLength: 7 }).map((parts) => ['Upstash', ...parts].join('-')),
    fc.array(part, { maxLength: 4 }).map((parts) => parts.join('-')),
    fc.string(),
  );
  const value = fc.oneof(
    fc.constantFrom('true', '1', '10s', 'https://h/', 'rate=1', 'body', 'a,b', '1000*retried', 'PUT', ''),
    fc.string({ unit: 'binary' }),
  );

  it('is accepted or rejected with an ApiError, and never fails otherwise', () => {
    const headers = fc.array(fc.tuple(name, value), { maxLength: 12 });
    fc.assert(
      fc.property(headers, headers, fc.constantFrom('publish', 'enqueue', 'schedule'), (raw, queryConfig, context) =>
        onlyRefuses(() => read(raw.flat(), { queryConfig, context, tokenInQuery: true })),
      ),
      { numRuns: 500 },
    );
  });

  it('means the same in both dialects', () => {
    const headers = fc.array(fc.tuple(name, value), { maxLength: 8 });
    const outcome = (raw: string[]): unknown => {
      try {
        const { settings, ...rest } = read(raw);
        return { ...rest, settings: { ...settings, dialect: undefined } };
      } catch (error) {
        return String(error).replaceAll('Waypost-', 'Upstash-');
      }
    };
    fc.assert(
      fc.property(headers, (pairs) => {
        const upstash = pairs.filter(([n]) => /^upstash-/i.test(n) && !/-(upstash|waypost)/i.test(n));
        const waypost = upstash.map(([n, v]) => [n.replace(/^upstash/i, 'Waypost'), v]);
        expect(outcome(waypost.flat())).toEqual(outcome(upstash.flat()));
      }),
    );
  });
});
