import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { queryParameters, queryValues, readTarget, splitQuery } from '../../src/protocol/request-target.ts';
import { onlyRefuses, refusalOf } from './refusal.ts';

describe('a request target', () => {
  it.each([
    ['/v2/publish/https://example.com/a?b=c', '/v2/publish', 'https://example.com/a', 'b=c'],
    ['/v2/publish/https://example.com/', '/v2/publish', 'https://example.com/', ''],
    ['/v2/publish/https://example.com', '/v2/publish', 'https://example.com', ''],
    ['/v2/publish/http://h/a//b/../c/%2F%20?x=?&y', '/v2/publish', 'http://h/a//b/../c/%2F%20', 'x=?&y'],
    ['/v2/publish/https%3A%2F%2Fexample.com', '/v2/publish', 'https%3A%2F%2Fexample.com', ''],
    ['/v2/publish/https://example.com/a?', '/v2/publish', 'https://example.com/a?', ''],
    ['/v2/enqueue/q/https://example.com/a?', '/v2/enqueue/q', 'https://example.com/a?', ''],
    ['/v2/schedules/https://example.com/a?', '/v2/schedules', 'https://example.com/a?', ''],
    ['/v2/publish', '/v2/publish', '', ''],
    ['/v2/publish/', '/v2/publish', '', ''],
    ['/V2/Publish/My-Group', '/v2/publish', 'My-Group', ''],
    ['/v2/enqueue/My.Q/https://h/', '/v2/enqueue/My.Q', 'https://h/', ''],
    ['/v2/ENQUEUE/q/group?a', '/v2/enqueue/q', 'group', 'a'],
    ['/v2/enqueue/q', '/v2/enqueue/q', '', ''],
    ['/v2/enqueue/q/', '/v2/enqueue/q', '', ''],
    ['/v2/enqueue', '/v2/enqueue', '', ''],
    ['/v2/enqueue/', '/v2/enqueue', '', ''],
    ['/v2/schedules/https://example.com/pause', '/v2/schedules', 'https://example.com/pause', ''],
    ['/v2/Schedules/group', '/v2/schedules', 'group', ''],
    ['/v2/schedules/https%3A%2F%2Fh/pause', '/v2/schedules', 'https%3A%2F%2Fh/pause', ''],
    ['/v2/schedules/a/b/pause', '/v2/schedules', 'a/b/pause', ''],
    ['/v2/schedules', '/v2/schedules', '', ''],
  ])('%s is routed with its destination kept raw (12, 14, 20, 126)', (target, routePath, rawDestination, rawQuery) => {
    expect(readTarget(target)).toEqual({ routePath, rawDestination, rawQuery });
  });

  it.each([
    ['/v2/queues/', '/v2/queues'],
    ['/v2/queues///', '/v2/queues'],
    ['/v2/messages/', '/v2/messages'],
    ['/V2/Messages/msg_AbC', '/v2/messages/msg_AbC'],
    ['/v2/queues/MyQueue/PAUSE/', '/v2/queues/MyQueue/pause'],
    ['/v2/queues/Pause/resume', '/v2/queues/Pause/resume'],
    ['/v2/flowControl/Key/resetRate', '/v2/flowcontrol/Key/resetrate'],
    ['/v2/globalParallelism', '/v2/globalparallelism'],
    ['/v2/dlq/Retry/17-0', '/v2/dlq/retry/17-0'],
    ['/v2/dlq/17-A', '/v2/dlq/17-A'],
    ['/v2/Keys/Rotate', '/v2/keys/rotate'],
    ['/v2/topics/G/Endpoints', '/v2/topics/G/endpoints'],
    ['/v2/Schedules/Id/Pause', '/v2/schedules/Id/pause'],
    ['/v2/schedules/a%2Db/resume/', '/v2/schedules/a%2Db/resume'],
    ['/v2/queues/a%2fb', '/v2/queues/a%2fb'],
    ['/v2//queues', '/v2//queues'],
    ['/v2/../v2/queues', '/v2/../v2/queues'],
    ['/v2/publishing/X', '/v2/publishing/X'],
    ['/v2/constructor/__proto__', '/v2/constructor/__proto__'],
    ['/v2', '/v2'],
    ['/v2/*/X', '/v2/*/X'],
    ['/v20/Queues/', '/v20/Queues/'],
    ['/HealthZ', '/HealthZ'],
    ['/', '/'],
    ['*', '*'],
    ['host:443', 'host:443'],
  ])('%s is routed as %s (5, 6, 8)', (target, routePath) => {
    expect(readTarget(target)).toEqual({ routePath, rawDestination: undefined, rawQuery: '' });
  });

  it('has a destination behind schedules only when it is posted', () => {
    expect(readTarget('/v2/Schedules/Scd_1', 'GET')).toMatchObject({
      routePath: '/v2/schedules/Scd_1',
      rawDestination: undefined,
    });
    expect(readTarget('/v2/schedules/S/pause', 'PATCH').routePath).toBe('/v2/schedules/S/pause');
  });

  it.each([
    ['http://server:8080/v2/queues/?a=b', '/v2/queues', 'a=b'],
    ['HTTPS://server/v2/keys', '/v2/keys', ''],
    ['http://server', '/', ''],
    ['http://server?x', '/', 'x'],
  ])('may be in absolute-form: %s', (target, routePath, rawQuery) => {
    expect(readTarget(target, 'GET')).toEqual({ routePath, rawDestination: undefined, rawQuery });
  });

  it('in absolute-form keeps an embedded destination', () => {
    expect(readTarget('http://server/v2/publish/https://h/?q').rawDestination).toBe('https://h/');
  });

  it('loses nothing of an embedded destination, whatever it is', () => {
    const text = fc.string({ unit: fc.constantFrom(...'aZ/.%2F:@#&=;\\~é ') });
    fc.assert(
      fc.property(text, text, (destination, query) => {
        const { rawDestination, rawQuery } = readTarget(`/v2/publish/${destination}?${query}`);
        const kept = query === '' ? `${destination}?` : destination;
        expect({ rawDestination, rawQuery }).toEqual({ rawDestination: kept, rawQuery: query });
      }),
    );
  });

  it('of any form is read without an error', () => {
    fc.assert(
      fc.property(fc.string(), fc.constantFrom('', '/', '/v2/', '/v2/schedules/', 'http://'), (text, start) =>
        onlyRefuses(() => readTarget(start + text)),
      ),
    );
  });
});

describe('the query string', () => {
  it('is divided between the server and the destination (16)', () => {
    expect(splitQuery('b=c&upstash-retries=1&d=%20&b=c&&Waypost-Label=a%2Cb&qstash_token=t&=x')).toEqual({
      token: 't',
      config: [
        ['upstash-retries', '1'],
        ['waypost-label', 'a,b'],
      ],
      rest: 'b=c&d=%20&b=c&&=x',
    });
  });

  it('keeps the bytes, order and duplicates of what is the destination’s (15)', () => {
    const piece = fc.stringMatching(/^[a-z%+=.;,!~*]{0,8}$/);
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const raw = pieces.join('&');
        expect(splitQuery(raw)).toEqual({ config: [], rest: raw });
      }),
    );
  });

  it.each([
    ['qstash_token=a%2Bb%3D%3D', 'a+b=='],
    ['qstash_token=a+b==', 'a+b=='],
    ['QSTASH_TOKEN=x', 'x'],
    ['qstash%5Ftoken=x', 'x'],
    ['qstash_token=first&qstash_token=second', 'first'],
    ['qstash_token=', ''],
    ['qstash_token', ''],
    ['qstash_token=%zz', '%zz'],
  ])('%s holds the token, and never passes it on (3, 4)', (raw, token) => {
    expect(splitQuery(raw)).toEqual({ token, config: [], rest: '' });
  });

  it('reads encoded names and plus signs of config parameters', () => {
    expect(splitQuery('%55pstash-Flow-Control-Value=rate%3D1,+period=2s').config).toEqual([
      ['upstash-flow-control-value', 'rate=1, period=2s'],
    ]);
  });

  it('refuses a config parameter that cannot be decoded, and leaves others alone', () => {
    expect(refusalOf(() => splitQuery('upstash-label=%ff'))).toEqual({
      code: 'invalid_query',
      status: 400,
      message: 'invalid query parameter upstash-label: malformed escape',
    });
    expect(splitQuery('%ff=%&%=1').rest).toBe('%ff=%&%=1');
  });

  it.each([
    ['label=a&label=b', ['a', 'b']],
    ['label=a,b', ['a', 'b']],
    ['label=a,,b,&x=1&label=c&label=&label', ['a', 'b', 'c']],
    ['l%61bel=a%2Cb+c', ['a', 'b c']],
    ['Label=a', []],
    ['', []],
  ])('%s has the labels %j (72)', (raw, values) => {
    expect(queryValues('label', queryParameters(raw).get('label') ?? [], { splitCommas: true })).toEqual(values);
  });

  it('never splits URLs at commas', () => {
    expect(queryValues('url', ['http://h/a,b', 'http://g'], { splitCommas: false })).toEqual([
      'http://h/a,b',
      'http://g',
    ]);
  });

  it('refuses a value that cannot be decoded, naming the parameter', () => {
    expect(refusalOf(() => queryValues('url', ['%e4'], { splitCommas: false })).message).toBe(
      'invalid query parameter url: malformed escape',
    );
  });

  it('tells its names once each', () => {
    expect([...queryParameters('a=1&b&a=2&&c%64=3&%=x')]).toEqual([
      ['a', ['1', '2']],
      ['b', ['']],
      ['cd', ['3']],
      ['%', ['x']],
    ]);
    expect(queryParameters('').size).toBe(0);
  });
});
