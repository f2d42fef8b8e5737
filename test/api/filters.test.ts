/** Parses the filters of a request from its query or JSON body, without a server (contract M 21). */
import { describe, expect, it } from 'vitest';
import { FILTER_VALUES_MAX, IDS_MAX } from '../../src/api/limits.ts';
import {
  type CountLimits,
  type MessageUse,
  messageFilters,
  readFilters,
  readSelection,
} from '../../src/api/messages/filters.ts';
import { shortened } from '../../src/api/requests/parameters.ts';
import { ApiError } from '../../src/protocol/errors.ts';

const USES: readonly MessageUse[] = ['cancel', 'dlqList', 'dlqBulk', 'logs', 'unfinished'];
const AMOUNT: CountLimits = { countDefault: 10, countMax: 100 };

function read(use: MessageUse, query: string, body?: unknown, amount = AMOUNT) {
  return readSelection(messageFilters(use, amount), amount.countDefault, query, body);
}

const TAKEN = 'it is taken';

/** What a request is told, or that it is taken. */
function told(use: MessageUse, query: string, body?: unknown, amount = AMOUNT): string {
  try {
    read(use, query, body, amount);
    return TAKEN;
  } catch (error) {
    if (error instanceof ApiError) return `${error.status} ${error.message}`;
    throw error;
  }
}

const listOf = (name: string, count: number): string =>
  Array.from({ length: count }, (_, index) => `${name}=${index}`).join('&');

describe('a filter', () => {
  it.each(USES)('that %s takes narrows it, and nothing else does', (use) => {
    const everything = read(use, '', undefined);
    const state = use === 'unfinished' ? 'active' : 'ACTIVE';
    const valid: Record<string, string> = { state, order: 'earliestFirst' };
    const names = messageFilters(use, AMOUNT).rows.map(({ name }) => name);
    const narrowed = names.filter((name) => {
      const filters = read(use, `${name}=${valid[name] ?? '7'}`);
      return JSON.stringify(filters) !== JSON.stringify(everything);
    });
    expect(narrowed).toEqual(names);
    expect(narrowed).toContain('label');
  });

  it('is narrowed by each of its kinds, values of one being alternatives that are told once', () => {
    const query =
      'url=https://a.example/?x,y&host=h&path=/p,q&topicName=t&queueName=q&scheduleId=s&label=a,b&label=b&flowControlKey=k' +
      '&callerIp=1.1.1.1&callerIP=2.2.2.2&messageId=m&state=ACTIVE,RETRY&state=IN_PROGRESS&fromDate=5&toDate=9';
    expect(read('logs', query).filter).toEqual({
      url: ['https://a.example/?x,y'],
      host: ['h'],
      path: ['/p,q'],
      topicName: ['t'],
      queueName: ['q'],
      scheduleId: ['s'],
      label: ['a', 'b'],
      flowControlKey: ['k'],
      callerIp: ['1.1.1.1', '2.2.2.2'],
      messageId: ['m'],
      state: ['ACTIVE', 'RETRY', 'ERROR'],
      fromMs: 5,
      toMs: 9,
    });
    expect(read('dlqList', 'responseStatus=500,404&responseStatus=500&endpointName=e,f').filter).toEqual({
      responseStatus: [500, 404],
      endpointName: ['e,f'],
    });
  });

  it('is read from a body as from the query, which wins name by name', () => {
    const body = { label: ['x', 'y'], fromDate: 5, count: 3 };
    expect(read('cancel', 'label=q', body)).toEqual({
      filter: { label: ['q'], fromMs: 5 },
      page: { count: 3, order: 'latestFirst' },
    });
  });

  it.each<[MessageUse, string, string]>([
    ['cancel', 'lable=a', '400 unknown query parameter lable'],
    ['cancel', 'state=ACTIVE', '400 unknown query parameter state'],
    ['dlqBulk', 'lable=a', '400 unknown query parameter lable'],
    ['dlqBulk', 'host=a', '400 unknown query parameter host'],
    ['dlqList', 'lable=a&host=a&messageIds=a', TAKEN],
    ['logs', 'lable=a&dlqIds=a&responseStatus=500', TAKEN],
  ])('that %s does not know is refused where it would widen an action: ?%s', (use, query, expected) => {
    expect(told(use, query)).toBe(expected);
    if (expected === TAKEN) expect(read(use, query)).toEqual(read(use, ''));
  });

  it.each<[MessageUse, string, string]>([
    [
      'cancel',
      'label=',
      '400 invalid query parameter label: it has no value, and leaving it out would widen the action',
    ],
    [
      'dlqBulk',
      'label=',
      '400 invalid query parameter label: it has no value, and leaving it out would widen the action',
    ],
    ['dlqList', 'label=&state=', TAKEN],
    ['logs', 'label=&state=&count=', TAKEN],
  ])('without a value is none, which %s refuses where it would widen an action: ?%s', (use, query, expected) => {
    expect(told(use, query)).toBe(expected);
    if (expected === TAKEN) expect(read(use, query)).toEqual(read(use, ''));
  });

  it('takes so many values and no more', () => {
    for (const name of ['label', 'responseStatus', 'callerIp']) {
      expect(told('dlqList', listOf(name, FILTER_VALUES_MAX))).toBe(TAKEN);
      expect(told('dlqList', listOf(name, FILTER_VALUES_MAX + 1))).toBe(
        `400 invalid query parameter ${name}: at most ${FILTER_VALUES_MAX} values are possible, got ${FILTER_VALUES_MAX + 1}`,
      );
    }
  });

  it.each([
    ['state=DONE', /^400 invalid query parameter state: one of CREATED, .*, CANCELLED, IN_PROGRESS is needed$/],
    ['fromDate=yesterday', /^400 .* fromDate: a whole number is needed$/],
    ['fromDate=1&fromDate=2', /^400 .* fromDate: only one value is possible$/],
    ['toDate=-1', /^400 .* toDate: a whole number is needed$/],
    ['messageId=a&messageId=b', /^400 .* messageId: only one value is possible$/],
    ['order=newest', /^400 .* order: earliestFirst or latestFirst is needed$/],
    ['cursor=a&cursor=b', /^400 .* cursor: only one value is possible$/],
  ])('that cannot be read is named: ?%s', (query, expected) => {
    expect(told('logs', query)).toMatch(expected);
  });

  it.each([
    ['CANCELED', ['CANCELED']],
    ['CANCELLED', ['CANCELED']],
    ['CANCEL_REQUESTED', ['CANCEL_REQUESTED']],
    ['IN_PROGRESS', ['ACTIVE', 'RETRY', 'ERROR']],
  ])('may be the state %s, which means entries of %j', (name, states) => {
    expect(read('logs', `state=${name}`).filter.state).toEqual(states);
  });
});

describe('ids', () => {
  it.each<[MessageUse, string]>([
    ['cancel', 'messageIds'],
    ['dlqList', 'dlqIds'],
    ['dlqBulk', 'dlqIds'],
  ])('of %s in %s stand for everything else', (use, name) => {
    const filters = read(use, `${name}=a,b&${name}=a&label=x&count=7`);
    expect(filters).toEqual({ ids: ['a', 'b'], filter: {}, page: { count: 10, order: 'latestFirst' } });
  });

  it('of logs are paged like any other list', () => {
    const filters = read('logs', 'messageIds=a,b&label=x&count=7&cursor=c&order=earliestFirst');
    const page = { count: 7, cursor: 'c', order: 'earliestFirst' };
    expect(filters).toEqual({ ids: ['a', 'b'], filter: {}, page });
  });

  it.each<[MessageUse, string]>([
    ['cancel', 'messageIds'],
    ['dlqBulk', 'dlqIds'],
  ])('of %s are at most so many', (use, name) => {
    expect(told(use, listOf(name, IDS_MAX))).toBe(TAKEN);
    expect(told(use, listOf(name, IDS_MAX + 1))).toContain(`${name}: at most ${IDS_MAX} values are possible`);
  });

  it('that are an empty array mean all messages, and no entry of the DLQ (21.5)', () => {
    expect(read('cancel', '', { messageIds: [] })).toEqual(read('cancel', ''));
    expect(read('logs', '', { messageIds: [] })).toEqual(read('logs', ''));
    expect(read('dlqBulk', '', { dlqIds: [] }).ids).toEqual([]);
    expect(read('dlqBulk', 'dlqIds=').ids).toEqual([]);
  });

  it('that an empty query names mean nothing in a list, and are refused by a bulk action', () => {
    expect(read('logs', 'messageIds=')).toEqual(read('logs', ''));
    expect(told('cancel', 'messageIds=')).toBe('400 invalid query parameter messageIds: it has no value');
  });
});

describe('a page', () => {
  it('has the default length unless a count is given', () => {
    expect(read('logs', '').page.count).toBe(10);
    expect(read('logs', 'count=7').page.count).toBe(7);
  });

  it.each([
    ['1', 1],
    ['100', 100],
    ['101', 100],
  ])('of %s is %s', (count, expected) => {
    expect(read('logs', `count=${count}`).page.count).toBe(expected);
  });

  it('of nothing is refused', () => {
    expect(told('logs', 'count=0')).toBe('400 invalid query parameter count: a number of at least 1 is needed');
  });

  it('of a cancel has no limit without a count, and with the 100 that clients send unasked', () => {
    const countOf = (query: string) => readFilters(messageFilters('cancel'), query).count;
    expect(['label=a', 'count=100', 'count=1', 'count=99', 'count=101', 'count=100000'].map(countOf)).toEqual([
      ...[undefined, undefined, 1, 99, 101, 100_000],
    ]);
  });

  it('begins where the one before ended, and goes the way that is asked for', () => {
    expect(read('logs', 'cursor=a,b&order=earliestFirst')).toMatchObject({
      page: { cursor: 'a,b', order: 'earliestFirst' },
    });
    expect(read('logs', 'order=latestFirst').page.order).toBe('latestFirst');
    expect(read('logs', '')).toEqual({ filter: {}, page: { count: 10, order: 'latestFirst' } });
  });
});

it('a name is repeated up to 64 characters', () => {
  const longest = 'n'.repeat(64);
  expect(shortened(longest)).toBe(longest);
  expect(shortened(`${longest}n`)).toBe(`${longest}…`);
});
