/** Bulk actions on runs: an empty selection is refused, because the server would take it as all runs. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Client, WorkflowError } from '../../packages/workflow/src/index.ts';
import { Endpoints } from '../support/listen.ts';

let endpoints: Endpoints;
let asked: string[];
/** Of a server that does whatever it is asked. `any`: callers without types give anything. */
// biome-ignore lint/suspicious/noExplicitAny: as above
let client: any;
beforeEach(async () => {
  endpoints = new Endpoints();
  asked = [];
  const baseUrl = await endpoints.listen((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.end('{}');
  });
  client = new Client({ baseUrl, token: 'mine' });
});
afterEach(() => endpoints.close());

const NO_CHOICE = 'The request has neither ids nor a filter; for all runs use { all: true }';
const NO_VALUE = 'filter has no member with a value; for all runs use { all: true }';
const EMPTY_FILTERS: [request: object, message: string][] = [
  [{}, NO_CHOICE],
  [{ count: 5 }, NO_CHOICE],
  [{ all: false }, NO_CHOICE],
  [{ filter: undefined }, NO_CHOICE],
  [{ filter: {} }, NO_VALUE],
  [{ filter: { label: undefined } }, NO_VALUE],
  [{ filter: { label: [] } }, 'filter.label has no values; for all runs use { all: true }'],
  [{ filter: { label: '' } }, 'filter.label has an empty value; for all runs use { all: true }'],
  [{ filter: { label: [''] } }, 'filter.label has an empty value; for all runs use { all: true }'],
  [{ filter: { label: [], callerIp: '127.0.0.1' } }, 'filter.label has no values; for all runs use { all: true }'],
];

describe('cancel', () => {
  it.each([
    ...EMPTY_FILTERS,
    [{ workflowRunIds: undefined }, NO_CHOICE],
    [{ workflowRunIds: [] }, 'workflowRunIds has no values; for all runs use { all: true }'],
    [{ workflowRunIds: [undefined] }, 'workflowRunIds has an empty value; for all runs use { all: true }'],
    [{ ids: undefined }, NO_CHOICE],
    [{ ids: '' }, 'ids has an empty value; for all runs use { all: true }'],
    [{ urlStartingWith: undefined }, NO_CHOICE],
    [{ urlStartingWith: '' }, 'urlStartingWith has an empty value; for all runs use { all: true }'],
    [
      { filter: { workflowUrlStartingWith: '' } },
      'filter.workflowUrlStartingWith has an empty value; for all runs use { all: true }',
    ],
    ['', 'workflowRunIds has an empty value; for all runs use { all: true }'],
  ])('refuses %o', async (request, message) => {
    await expect(client.cancel(request)).rejects.toThrow(new WorkflowError(message));
    expect(asked).toEqual([]);
  });

  it.each([
    ['wfr_a', 'workflowRunIds=wfr_a'],
    [{ ids: undefined, urlStartingWith: 'http://a' }, 'count=100&workflowUrl=http%3A%2F%2Fa'],
    [{ filter: { label: ['a', 'b'], workflowUrl: undefined } }, 'label=a&label=b&count=100'],
    [
      { filter: { workflowUrl: 'http://a' }, count: 5 },
      'count=5&workflowUrl=http%3A%2F%2Fa&workflowUrlExactMatch=true',
    ],
    [{ filter: { label: 'a' }, all: true }, 'label=a&count=100'],
    [{ all: true }, 'count=100'],
  ])('asks for what %j names', async (request, query) => {
    await client.cancel(request);
    expect(asked).toEqual([`DELETE /v2/workflows/runs?${query}`]);
  });
});

describe.each(['delete', 'resume', 'restart'])('dlq.%s', (method) => {
  it.each([
    ...EMPTY_FILTERS,
    [{ dlqIds: undefined }, NO_CHOICE],
    [{ dlqIds: [] }, 'dlqIds has no values; for all runs use { all: true }'],
    [{ dlqIds: '' }, 'dlqIds has an empty value; for all runs use { all: true }'],
    ['', 'dlqIds has an empty value; for all runs use { all: true }'],
  ])('refuses %o', async (request, message) => {
    await expect(client.dlq[method](request)).rejects.toThrow(new WorkflowError(message));
    expect(asked).toEqual([]);
  });

  it.each([
    ['1-2', 'dlqIds=1-2'],
    [{ filter: { label: 'a', failureFunctionState: undefined }, cursor: 'next' }, 'label=a&count=100&cursor=next'],
    [{ all: true, count: 5 }, 'count=5'],
  ])('asks for what %j names', async (request, query) => {
    await client.dlq[method](request);
    expect(asked).toEqual([expect.stringMatching(new RegExp(`/v2/workflows/dlq(/${method})?\\?${query}$`))]);
  });
});
