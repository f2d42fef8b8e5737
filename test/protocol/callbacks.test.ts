import { describe, expect, it } from 'vitest';
import { collectConfiguration } from '../../src/protocol/options/config-scopes.ts';
import { messageOf, read } from './reading.ts';
import { headerMap, refusalOf } from './refusal.ts';

describe('callbacks', () => {
  it('have the options of a message, with names read from the left (116)', () => {
    const { settings } = read([
      'Upstash-Callback',
      'https://cb/',
      'Upstash-Callback-Method',
      'put',
      'Upstash-Callback-Timeout',
      '5s',
      'Upstash-Callback-Retries',
      '1',
      'Upstash-Callback-Retry-Delay',
      '100',
      'Upstash-Callback-Forward-X-Y',
      'v',
      'Upstash-Callback-Forward-Callback-X',
      'w',
      'Upstash-Callback-Label',
      'l',
      'Upstash-Callback-Flow-Control-Key',
      'k',
      'Upstash-Callback-Flow-Control-Value',
      'rate=1',
      'Upstash-Callback-Redact-Fields',
      'body',
      'Upstash-Callback-Failure-Callback',
      'https://cb-failed/',
      'Upstash-Callback-Failure-Callback-Retries',
      '2',
      'Upstash-Callback-Failure-Callback-Callback',
      'https://third/',
      'Upstash-Failure-Callback-Retries',
      '7',
      'Upstash-Retries',
      '5',
    ]);
    expect(settings).toEqual({
      dialect: 'upstash',
      maxRetries: 5,
      callback: {
        url: 'https://cb/',
        method: 'PUT',
        header: headerMap({ 'X-Y': ['v'], 'Callback-X': ['w'] }),
        timeoutMs: 5000,
        maxRetries: 1,
        retryDelayExpression: '100',
        labels: ['l'],
        flowControl: { key: 'k', rate: 1, periodS: 1 },
        redact: { body: true, headers: [] },
        failureCallback: {
          url: 'https://cb-failed/',
          method: 'POST',
          header: headerMap({}),
          maxRetries: 2,
          callback: { url: 'https://third/', method: 'POST', header: headerMap({}) },
        },
      },
    });
  });

  it.each([
    'Upstash-Callback-Delay',
    'Upstash-Callback-Not-Before',
    'Upstash-Failure-Callback-Delay',
    'Waypost-Failure-Callback-Not-Before',
    'Upstash-Callback-Failure-Callback-Delay',
  ])('refuse %s (117)', (name) => {
    expect(refusalOf(() => read([name, '1s']))).toMatchObject({ status: 400, message: `${name} is not supported` });
  });

  it('can be nested three levels deep', () => {
    const three = ['Upstash-Callback-Callback-Failure-Callback', 'https://x/'];
    expect(() => read(three)).not.toThrow();
    expect(() => read(['Upstash-Callback-Callback-Callback-Retries', '1'])).not.toThrow();
    for (const name of ['Callback', 'Retries', 'Callback-Callback-Callback-Callback-Foo', 'Forward-X']) {
      const deep = `Upstash-Callback-Callback-Callback-${name === 'Callback' ? '' : 'Callback-'}${name}`;
      expect(messageOf([deep, 'https://x/'])).toBe(`invalid ${deep}: callbacks can be nested at most 3 levels deep`);
    }
  });

  it('are collected only as deep as the limit requires, however long a name is', () => {
    const rawHeaders = [`Upstash-${'Callback-'.repeat(1_000)}Retries`, '1'];
    let depth = 0;
    const input = { rawHeaders, queryConfig: [], tokenInQuery: false, proxyHeaders: [] };
    let scope = collectConfiguration(input).scope.callbacks.callback;
    for (; scope; scope = scope.callbacks.callback) depth += 1;
    expect(depth).toBe(4);
  });

  it('ignore deduplication, and all options without a URL', () => {
    expect(read(['Upstash-Callback-Retries', '1', 'Upstash-Failure-Callback-Label', 'x']).settings).toEqual(
      read([]).settings,
    );
    expect(() => read(['Upstash-Callback', 'http://x', 'Upstash-Callback-Deduplication-Id', 'a:b'])).not.toThrow();
  });

  it('lose the fragment of their URL', () => {
    expect(read(['Upstash-Callback', 'https://x/a#b']).settings.callback?.url).toBe('https://x/a');
  });
});
