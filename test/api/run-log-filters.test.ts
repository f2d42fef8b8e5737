/** Parses the queries of run logs, and refuses invalid ones (contract W 17.3). */
import { expect, test } from 'vitest';
import { readEventsQuery, readRunsQuery } from '../../src/api/runs/run-filters.ts';

test('without a query all runs are meant, ten at a time, and all events, a thousand at a time', () => {
  expect(readRunsQuery('')).toEqual({ filter: {}, page: { count: 10, order: 'latestFirst' } });
  expect(readEventsQuery('')).toEqual({ filter: {}, page: { count: 1000, order: 'latestFirst' } });
});

test('every filter of runs is read', () => {
  const query =
    'workflowRunId=wfr_a&workflowCreatedAt=5&workflowUrl=https%3A%2F%2Fa%2Cb&label=a,b&label=c&flowControlKey=k' +
    '&callerIp=1.1.1.1&host=h&path=%2Fp&messageId=msg_1&fromDate=1&toDate=2&state=RUN_FAILED,STEP_RETRY&count=3&cursor=4-5';
  expect(readRunsQuery(query)).toEqual({
    filter: {
      ...{ runId: ['wfr_a'], runCreatedAtMs: 5, runUrl: ['https://a,b'], label: ['a', 'b', 'c'] },
      ...{ flowControlKey: ['k'], callerIp: ['1.1.1.1'], host: ['h'], path: ['/p'], messageId: ['msg_1'] },
      ...{ fromMs: 1, toMs: 2, state: ['RUN_FAILED'], stepState: ['STEP_RETRY'] },
    },
    page: { count: 3, order: 'latestFirst', cursor: '4-5' },
  });
});

test('named runs make all other filters be ignored', () => {
  const { filter, page } = readRunsQuery('workflowRuns=wfr_a@5,b@c@6&state=nonsense&workflowRunId=x&count=2');
  expect(filter).toEqual({
    runs: [
      { id: 'wfr_a', createdAtMs: 5 },
      { id: 'b@c', createdAtMs: 6 },
    ],
  });
  expect(page.count).toBe(2);
});

test('the id of a run may have commas: escaped in a list of ids, and as they are before a time', () => {
  expect(readRunsQuery('workflowRunId=wfr_a%2C1,wfr_b').filter.runId).toEqual(['wfr_a,1', 'wfr_b']);
  const named = [
    { id: 'wfr_a,1', createdAtMs: 5 },
    { id: 'wfr_b', createdAtMs: 6 },
  ];
  expect(readRunsQuery('workflowRuns=wfr_a,1@5,wfr_b@6').filter).toEqual({ runs: named });
  expect(readRunsQuery('workflowRuns=wfr_a%2C1%405%2C%2Cwfr_b%406%2C').filter).toEqual({ runs: named });
});

test('too large a count is lowered', () => {
  expect(readRunsQuery('count=50').page.count).toBe(10);
  expect(readEventsQuery('count=5000').page.count).toBe(1000);
});

test.for<[text: string, bytesMax: number | undefined]>([
  ['', undefined],
  ['trimBody=-1', undefined],
  ['trimBody=0', 0],
  ['trimBody=7', 7],
  ['trimBody=9007199254740991', 2 ** 30],
])('%j shows %s bytes of a body', ([text, bytesMax]) => {
  expect(readRunsQuery(text).bodyBytesMax).toBe(bytesMax);
});

test('states of events have their aliases', () => {
  expect(readEventsQuery('state=CANCELLED').filter.state).toEqual(['CANCELED']);
  expect(readEventsQuery('state=IN_PROGRESS').filter.state).toEqual(['ACTIVE', 'RETRY', 'ERROR', 'STEP_PARKED']);
  expect(readEventsQuery('state=INVOKED,DELIVERED').filter.state).toEqual(['INVOKED', 'DELIVERED']);
});

test.for([
  'count=0',
  'count=x',
  'count=-1',
  'state=DELIVERED',
  'state=run_failed',
  'workflowUrl=app.example',
  'workflowCreatedAt=soon',
  'fromDate=x',
  'trimBody=-2',
  'trimBody=x',
  'workflowRuns=wfr_a',
  'workflowRuns=@5',
  'workflowRuns=a@x',
])('runs by %s are refused, with the name of the parameter', (query) => {
  const [name = ''] = query.split('=');
  expect(() => readRunsQuery(query)).toThrow(new RegExp(`^invalid query parameter ${name}: `));
});

test.for(['state=STEP_RETRY', 'state=x', 'count=0', 'toDate=x'])('events by %s are refused', (query) => {
  const [name = ''] = query.split('=');
  expect(() => readEventsQuery(query)).toThrow(new RegExp(`^invalid query parameter ${name}: `));
});
