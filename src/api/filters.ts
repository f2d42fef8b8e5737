/**
 * Which items does a request mean? Reads the filters of lists and bulk actions (contract M 21). The table of contract M 21.2
 * is data: a new filter is a new row. Query and JSON body are read alike; the query wins name by name.
 */
import type { DeadFilter, LogFilter } from '../engine/filters.ts';
import type { LogState } from '../engine/model.ts';
import { ApiError } from '../protocol/errors.ts';
import { FILTER_VALUES_MAX, IDS_MAX } from './limits.ts';
import {
  invalidParameter,
  type Parameters,
  type ParameterValue,
  readParameters,
  singleValue,
  wholeNumber,
} from './parameters.ts';

export type FilterUse = 'cancel' | 'dlqList' | 'dlqBulk' | 'logs';

/** `read` it, `ignore` it (lists do so with what they do not know), or `refuse` it (bulk actions: a dropped filter would widen them). */
type Treatment = 'read' | 'ignore' | 'refuse';

interface FilterRow {
  name: string;
  cancel: Treatment;
  dlqList: Treatment;
  dlqBulk: Treatment;
  logs: Treatment;
}

function row(name: string, cancel: Treatment, dlqList: Treatment, dlqBulk: Treatment, logs: Treatment): FilterRow {
  return { name, cancel, dlqList, dlqBulk, logs };
}

/** contract M 21.2, row by row. */
const FILTER_TABLE: readonly FilterRow[] = [
  row('messageId', 'refuse', 'read', 'read', 'read'),
  row('messageIds', 'read', 'ignore', 'refuse', 'read'),
  row('dlqIds', 'refuse', 'read', 'read', 'ignore'),
  row('url', 'read', 'read', 'read', 'read'),
  row('topicName', 'read', 'read', 'read', 'read'),
  row('endpointName', 'refuse', 'read', 'read', 'ignore'),
  row('queueName', 'read', 'read', 'read', 'read'),
  row('scheduleId', 'read', 'read', 'read', 'read'),
  row('label', 'read', 'read', 'read', 'read'),
  row('flowControlKey', 'read', 'read', 'read', 'read'),
  row('callerIp', 'read', 'read', 'read', 'read'),
  row('callerIP', 'read', 'read', 'read', 'read'),
  row('host', 'read', 'ignore', 'refuse', 'read'),
  row('path', 'read', 'ignore', 'refuse', 'read'),
  row('state', 'refuse', 'ignore', 'refuse', 'read'),
  row('responseStatus', 'refuse', 'read', 'read', 'ignore'),
  row('fromDate', 'read', 'read', 'read', 'read'),
  row('toDate', 'read', 'read', 'read', 'read'),
  row('count', 'read', 'read', 'read', 'read'),
  row('cursor', 'refuse', 'read', 'read', 'read'),
  row('order', 'refuse', 'read', 'refuse', 'read'),
];

const ROW_BY_NAME: ReadonlyMap<string, FilterRow> = new Map(FILTER_TABLE.map((entry) => [entry.name, entry]));

/** The filters that a request of `use` may hold, in the order of the table. */
export function filterNames(use: FilterUse): string[] {
  return FILTER_TABLE.filter((entry) => entry[use] === 'read').map(({ name }) => name);
}

/** How much one request may ask for (contract M 21.4, 22.24, 22.39). */
export interface Amount {
  /** Without `count`; absent: everything. */
  countDefault?: number;
  countMax: number;
  /** Whether more than `countMax` is lowered to it instead of refused. */
  isLowered: boolean;
}

/** What a list or a bulk action means. When `ids` is there, everything else is ignored. */
export interface Filters {
  /** `messageIds` or `dlqIds`. Empty: acts on nothing. */
  ids?: string[];
  attributes: DeadFilter & LogFilter;
  count?: number;
  cursor?: string;
  order: 'latestFirst' | 'earliestFirst';
}

const TEXT_FILTERS = [
  'url',
  'host',
  'path',
  'topicName',
  'endpointName',
  'queueName',
  'scheduleId',
  'label',
  'flowControlKey',
] as const;

/**
 * Reads the filters of `use` from the raw query and the parsed JSON body (`undefined` without one). Throws
 * `ApiError` 400 that names the parameter.
 */
export function readFilters(use: FilterUse, rawQuery: string, body: unknown, amount: Amount): Filters {
  const known = readParameters(rawQuery, body, (name) => isRead(use, name));
  dropEmpty(use, known);
  const filters: Filters = { attributes: {}, order: 'latestFirst' };
  const ids = readIds(use, known);
  if (ids) {
    filters.ids = ids;
    if (use !== 'logs') return filters;
  } else {
    readAttributes(known, filters.attributes);
  }
  // A list by ids can still be longer than a page, so logs are paged whatever selects them.
  readPaging(known, amount, filters);
  return filters;
}

/** Throws `ApiError` 400 on what must not be dropped silently. */
function isRead(use: FilterUse, name: string): boolean {
  const treatment = ROW_BY_NAME.get(name)?.[use] ?? (isBulk(use) ? 'refuse' : 'ignore');
  if (treatment === 'refuse') throw new ApiError('invalid_query', `unknown query parameter ${shown(name)}`);
  return treatment === 'read';
}

/** A filter without a value is none; on a bulk action that would widen it, so it is refused there. Id lists may be empty. */
function dropEmpty(use: FilterUse, known: Parameters): void {
  for (const [name, { values }] of known) {
    if (values.length > 0 || name === 'messageIds' || name === 'dlqIds') continue;
    if (isBulk(use)) throw invalidParameter(name, 'it has no value, and leaving it out would widen the action');
    known.delete(name);
  }
}

function isBulk(use: FilterUse): boolean {
  return use === 'cancel' || use === 'dlqBulk';
}

/** `undefined` when no ids were given. An empty list of message ids in a body means everything, of DLQ ids nothing. */
function readIds(use: FilterUse, known: Parameters): string[] | undefined {
  const name = use === 'dlqList' || use === 'dlqBulk' ? 'dlqIds' : 'messageIds';
  const given = known.get(name);
  if (!given) return undefined;
  if (given.values.length === 0 && name === 'messageIds') {
    if (given.from === 'query' && isBulk(use)) throw invalidParameter(name, 'it has no value');
    return undefined;
  }
  return different(name, given, IDS_MAX);
}

/** Repeated values mean nothing more. Throws when more than `valuesMax` are left. */
export function different(name: string, { values }: ParameterValue, valuesMax: number): string[] {
  const once = [...new Set(values)];
  if (once.length > valuesMax)
    throw invalidParameter(name, `at most ${valuesMax} values are possible, got ${once.length}`);
  return once;
}

function readAttributes(known: Parameters, into: Filters['attributes']): void {
  for (const name of TEXT_FILTERS) {
    const given = known.get(name);
    if (given) into[name] = different(name, given, FILTER_VALUES_MAX);
  }
  const callerIps = ['callerIp', 'callerIP'].flatMap((name) => {
    const given = known.get(name);
    return given ? different(name, given, FILTER_VALUES_MAX) : [];
  });
  if (callerIps.length > 0) into.callerIp = callerIps;
  const messageId = known.get('messageId');
  if (messageId) into.messageId = [singleValue('messageId', messageId)];
  const states = known.get('state');
  if (states) into.state = [...new Set(states.values.flatMap(readState))];
  const statuses = known.get('responseStatus');
  if (statuses) {
    const texts = different('responseStatus', statuses, FILTER_VALUES_MAX);
    into.responseStatus = texts.map((text) => wholeNumber('responseStatus', text));
  }
  const from = known.get('fromDate');
  if (from) into.fromMs = wholeNumber('fromDate', singleValue('fromDate', from));
  const to = known.get('toDate');
  if (to) into.toMs = wholeNumber('toDate', singleValue('toDate', to));
}

function readPaging(known: Parameters, amount: Amount, into: Filters): void {
  const count = known.get('count');
  if (count) into.count = readCount(singleValue('count', count), amount);
  else if (amount.countDefault !== undefined) into.count = amount.countDefault;
  const cursor = known.get('cursor');
  if (cursor) into.cursor = singleValue('cursor', cursor);
  const order = known.get('order');
  if (order) into.order = readOrder(singleValue('order', order));
}

export function readCount(text: string, { countMax, isLowered }: Amount): number {
  const count = wholeNumber('count', text);
  if (count === 0 || (count > countMax && !isLowered))
    throw invalidParameter('count', `a number from 1 to ${countMax} is needed`);
  return Math.min(count, countMax);
}

function readOrder(text: string): Filters['order'] {
  if (text === 'earliestFirst' || text === 'latestFirst') return text;
  throw invalidParameter('order', 'earliestFirst or latestFirst is needed');
}

/** The names that the `state` filter takes; two of them are spelled or grouped differently in entries (contract M 6.1). */
const STATES_BY_NAME: ReadonlyMap<string, readonly LogState[]> = new Map<string, readonly LogState[]>([
  ...(['CREATED', 'ACTIVE', 'DELIVERED', 'ERROR', 'RETRY', 'FAILED', 'CANCEL_REQUESTED', 'CANCELED'] as const).map(
    (state): [string, readonly LogState[]] => [state, [state]],
  ),
  ['CANCELLED', ['CANCELED']],
  ['IN_PROGRESS', ['ACTIVE', 'RETRY', 'ERROR']],
]);

export const STATE_NAMES: readonly string[] = [...STATES_BY_NAME.keys()];

function readState(text: string): readonly LogState[] {
  const states = STATES_BY_NAME.get(text);
  if (!states) throw invalidParameter('state', `one of ${STATE_NAMES.join(', ')} is needed`);
  return states;
}

/** A name as it came may be of any length; the error text repeats no more than helps. */
export function shown(name: string): string {
  return name.length <= 64 ? name : `${name.slice(0, 64)}…`;
}
