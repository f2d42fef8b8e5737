import { describe, expect, it } from 'vitest';
import { queryParameters, queryValues, splitQuery } from '../../src/protocol/urls/request-target.ts';
import { fc } from '../support/fast-check.ts';
import { refusalOf } from './refusal.ts';

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

  it('keeps the bytes, order and duplicates of the destination’s parameters (15)', () => {
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
  ])('%s contains the token, which is never passed on (3, 4)', (raw, token) => {
    expect(splitQuery(raw)).toEqual({ token, config: [], rest: '' });
  });

  it('reads encoded names and plus signs of config parameters', () => {
    expect(splitQuery('%55pstash-Flow-Control-Value=rate%3D1,+period=2s').config).toEqual([
      ['upstash-flow-control-value', 'rate=1, period=2s'],
    ]);
  });

  it('rejects a config parameter that cannot be decoded, and does not change other parameters', () => {
    expect(refusalOf(() => splitQuery('upstash-label=%ff'))).toEqual({
      code: 'invalid_query',
      status: 400,
      message: 'invalid query parameter upstash-label: malformed escape',
    });
    expect(splitQuery('%ff=%&%=1').rest).toBe('%ff=%&%=1');
  });

  it('rejects more config parameters than a request may have header lines', () => {
    const thousand = 'upstash-label=a&'.repeat(1_000);
    expect(splitQuery(thousand).config).toHaveLength(1_000);
    expect(refusalOf(() => splitQuery(`${thousand}Waypost-Label=a`))).toEqual({
      code: 'invalid_query',
      status: 400,
      message: 'invalid query: at most 1000 Upstash- parameters',
    });
  });

  it.each([
    ['label=a&label=b', ['a', 'b']],
    ['label=a,b', ['a', 'b']],
    ['label=a,,b,&x=1&label=c&label=&label', ['a', 'b', 'c']],
    ['l%61bel=a%2Cb+c', ['a', 'b c']],
    ['Label=a', []],
    ['', []],
  ])('%s has the labels %j (72)', (raw, values) => {
    expect(queryValues('label', queryParameters(raw).get('label') ?? [], 'separate')).toEqual(values);
  });

  it('never splits URLs at commas', () => {
    expect(queryValues('url', ['http://h/a,b', 'http://g'], 'belong')).toEqual(['http://h/a,b', 'http://g']);
  });

  it('treats an escaped comma as part of an id, and others as separators', () => {
    const values = queryValues('workflowRunIds', ['wfr_a%2C1,wfr_b', '%2c,,wfr_c'], 'separateUnlessEscaped');
    expect(values).toEqual(['wfr_a,1', 'wfr_b', ',', 'wfr_c']);
  });

  it('rejects a value that cannot be decoded, and names the parameter', () => {
    expect(refusalOf(() => queryValues('url', ['%e4'], 'belong')).message).toBe(
      'invalid query parameter url: malformed escape',
    );
  });

  it('lists each name once', () => {
    expect([...queryParameters('a=1&b&a=2&&c%64=3&%=x')]).toEqual([
      ['a', ['1', '2']],
      ['b', ['']],
      ['cd', ['3']],
      ['%', ['x']],
    ]);
    expect(queryParameters('').size).toBe(0);
  });
});
