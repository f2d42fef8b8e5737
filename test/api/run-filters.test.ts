import { describe, expect, it } from 'vitest';
import { readSelection } from '../../src/api/messages/filters.ts';
import { deadRunFilters, readCancelRequest } from '../../src/api/runs/run-filters.ts';
import type { ApiError } from '../../src/protocol/errors.ts';

const AMOUNT = { countDefault: 100, countMax: 100 };

function refusalOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    const { status, message } = error as ApiError;
    return `${status} ${message}`;
  }
  throw new Error('it was accepted');
}

describe('the runs that a bulk cancel means (contract W 17.2)', () => {
  it('are those whose URL begins so, unless the whole of it is given', () => {
    const url = 'https://a.example/x,y';
    expect(readCancelRequest(`workflowUrl=${encodeURIComponent(url)}`, undefined)).toEqual({
      filter: { urlPrefix: [url] },
      count: 100,
    });
    expect(readCancelRequest(`workflowUrl=${url}&workflowUrlExactMatch=true`, undefined)).toEqual({
      filter: { url: [url] },
      count: 100,
    });
  });

  it('are told by what they were triggered with, several values of one name being alternatives', () => {
    const query = 'label=a,b&label=c&callerIp=1.1.1.1&flowControlKey=k&host=h&path=/p,q&fromDate=5&toDate=9&count=7';
    expect(readCancelRequest(query, undefined)).toEqual({
      filter: {
        label: ['a', 'b', 'c'],
        callerIp: ['1.1.1.1'],
        flowControlKey: ['k'],
        host: ['h'],
        path: ['/p,q'],
        fromMs: 5,
        toMs: 9,
      },
      count: 7,
    });
  });

  it('are those with these ids, whatever else is said', () => {
    expect(readCancelRequest('workflowRunIds=a&workflowRunIds=b,a&label=x', undefined)).toEqual({ ids: ['a', 'b'] });
  });

  it('are told from each other by commas, unless these are escaped: then they are of an id', () => {
    const query = new URLSearchParams([
      ['workflowRunIds', 'wfr_tenant7,42'],
      ['workflowRunIds', 'wfr_b'],
    ]);
    expect(readCancelRequest(`${query}`, undefined)).toEqual({ ids: ['wfr_tenant7,42', 'wfr_b'] });
    expect(readCancelRequest('workflowRunIds=wfr_a,wfr_b%2C1', undefined)).toEqual({ ids: ['wfr_a', 'wfr_b,1'] });
  });

  it('may be told in JSON by older clients, and then are not counted', () => {
    expect(readCancelRequest('', { workflowRunIds: ['a', 'b'] })).toEqual({ ids: ['a', 'b'] });
    expect(readCancelRequest('', { workflowUrl: 'https://a.example' })).toEqual({
      filter: { urlPrefix: ['https://a.example'] },
    });
    expect(readCancelRequest('', {})).toEqual({ filter: {} });
    expect(readCancelRequest('', { workflowRunIds: [] })).toEqual({ ids: [] });
  });

  it.each([
    ['workflowRunIds=', 'workflowRunIds: it has no value, and leaving it out would widen the action'],
    ['label=', 'label: it has no value, and leaving it out would widen the action'],
    ['workflowUrlExactMatch=maybe', 'workflowUrlExactMatch: true or false is needed'],
    ['count=0', 'count: a number of at least 1'],
    ['fromDate=yesterday', 'fromDate: a whole number is needed'],
  ])('are refused with the name of what is wrong: %s', (query, reason) => {
    expect(refusalOf(() => readCancelRequest(query, undefined))).toContain(reason);
  });

  it('are a thousand by their ids, and no more', () => {
    const ids = Array.from({ length: 1_001 }, (_, n) => String(n));
    expect(readCancelRequest('', { workflowRunIds: ids.slice(1) })).toEqual({ ids: ids.slice(1) });
    expect(refusalOf(() => readCancelRequest('', { workflowRunIds: ids }))).toContain(
      'at most 1000 values are possible',
    );
  });

  it('are never more than was meant: what nobody knows is refused', () => {
    expect(refusalOf(() => readCancelRequest('lable=a', undefined))).toBe('400 unknown query parameter lable');
    expect(refusalOf(() => readCancelRequest('', { workflowRunId: 'a' }))).toBe(
      '400 unknown query parameter workflowRunId',
    );
  });
});

describe('the failed runs that a request means (contract W 21.2)', () => {
  const read = (query: string, body?: unknown, use: 'list' | 'bulk' = 'list') =>
    readSelection(deadRunFilters(AMOUNT, use === 'bulk'), AMOUNT.countDefault, query, body);

  it('are told by the run, by its failure and by what the failure callback came to', () => {
    const query =
      'workflowUrl=https://a.example&workflowRunId=r&workflowCreatedAt=4&label=x&failureFunctionState=CALLBACK_FAIL&callerIp=1.1.1.1&flowControlKey=k&responseStatus=500&fromDate=1&toDate=2&count=500&cursor=3-4';
    expect(read(query)).toEqual({
      filter: {
        url: ['https://a.example'],
        runId: 'r',
        runCreatedAtMs: 4,
        label: ['x'],
        failureCallback: ['fail'],
        callerIp: ['1.1.1.1'],
        flowControlKey: ['k'],
        responseStatus: [500],
        fromMs: 1,
        toMs: 2,
      },
      page: { count: 100, order: 'latestFirst', cursor: '3-4' },
    });
  });

  it('are those of one run id, commas included', () => {
    expect(read('workflowRunId=wfr_a%2C1').filter).toEqual({ runId: 'wfr_a,1' });
  });

  it('may be told by the names that older clients know', () => {
    expect(read('url=https://a.example&callerIP=1.1.1.1&failureCallbackState=CALLBACK_INPROGRESS').filter).toEqual({
      url: ['https://a.example'],
      callerIp: ['1.1.1.1'],
      failureCallback: ['inProgress'],
    });
  });

  it('are those with these ids, whatever else is said, and none with no ids', () => {
    expect(read('dlqIds=1-1,2-2&label=x')).toMatchObject({ ids: ['1-1', '2-2'], filter: {} });
    expect(read('', { dlqIds: ['1-1'] }, 'bulk')).toMatchObject({ ids: ['1-1'] });
    expect(read('', { dlqIds: [] }, 'bulk')).toMatchObject({ ids: [] });
    expect(read('dlqIds=')).toMatchObject({ ids: [] });
    expect(refusalOf(() => read('dlqIds=', undefined, 'bulk'))).toContain('it has no value');
  });

  it('are listed whatever else a query says, and acted on only when all of it is known', () => {
    expect(read('host=h&source=workflow&label=').filter).toEqual({});
    expect(refusalOf(() => read('host=h', undefined, 'bulk'))).toBe('400 unknown query parameter host');
    expect(refusalOf(() => read('failureFunctionState=BROKEN'))).toContain('CALLBACK_INPROGRESS');
  });
});
