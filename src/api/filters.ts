/**
 * Reads which messages a request selects (contract M 21). The table of contract M 21.2 is data: a new filter is a new
 * row. Query and JSON body are read alike; where both have the same filter, the query wins.
 */
import { Type } from '@sinclair/typebox';
import type { DeadFilter, LogFilter } from '../engine/filters.ts';
import { LOG_STATES, type LogState } from '../engine/model.ts';
import { STANDINGS, type UnfinishedFilter } from '../engine/unfinished.ts';
import { CURSOR, ids, statuses, texts, time, words } from './parameter-kinds.ts';
import {
  filtersFor,
  type Given,
  into,
  invalidParameter,
  type Parameter,
  parameter,
  singleValue,
  valuesOf,
  wholeNumber,
  withCommas,
} from './parameters.ts';

export type FilterUse = 'cancel' | 'dlqList' | 'dlqBulk' | 'logs' | 'unfinished';

/** How much one request may ask for (contract M 21.4, 22.24, 22.39); more is lowered. */
export interface Amount {
  countDefault: number;
  countMax: number;
}

/**
 * The names that the `state` filter accepts. CANCELLED is spelled otherwise in entries, IN_PROGRESS is a group of
 * states (contract M 6.1).
 */
const STATES: ReadonlyMap<string, readonly LogState[]> = new Map<string, readonly LogState[]>([
  ...LOG_STATES.map((state): [string, readonly LogState[]] => [state, [state]]),
  ['CANCELLED', ['CANCELED']],
  ['IN_PROGRESS', ['ACTIVE', 'RETRY', 'ERROR']],
]);

const DLQ = ['dlqList', 'dlqBulk'] as const;
const NOT_DLQ = ['cancel', 'logs', 'unfinished'] as const;
const EVERYWHERE = [...DLQ, ...NOT_DLQ];

const STANDING = words(
  'state',
  'waiting for its time, active in an attempt, or held back by its queue, key, origin or project.',
  new Map(STANDINGS.map((standing) => [standing, [standing]])),
);

/** contract M 21.2, row by row. */
function table(amount: Amount | undefined) {
  return [
    row([...DLQ, 'logs'], one('messageId', 'The message with this id.')),
    row(NOT_DLQ, ids('messageIds', 'The messages with these ids.')),
    row(DLQ, ids('dlqIds', 'The dead messages with these DLQ ids; all other filters are ignored then.')),
    row(EVERYWHERE, withCommas(texts('url', 'Destination, the whole URL.'))),
    row(EVERYWHERE, texts('topicName', 'URL group that was published to.')),
    row(DLQ, withCommas(texts('endpointName', 'Endpoint of the URL group, by its name there.'))),
    row(EVERYWHERE, texts('queueName', 'Queue of the message.')),
    row(EVERYWHERE, texts('scheduleId', 'Schedule that made the message.')),
    row(EVERYWHERE, texts('label', 'One of the labels of the message.')),
    row(EVERYWHERE, texts('flowControlKey', 'Flow-control key of the message.')),
    row(EVERYWHERE, texts('callerIp', 'Address that published the message.')),
    row(EVERYWHERE, into('callerIp', texts('callerIP', 'The same as callerIp.'))),
    row(NOT_DLQ, texts('host', 'Host of the destination.')),
    row(NOT_DLQ, withCommas(texts('path', 'Path of the destination.'))),
    row(['logs'], words('state', 'State that the entry tells of; IN_PROGRESS is ACTIVE, RETRY and ERROR.', STATES)),
    row(['unfinished'], into('standing', STANDING)),
    row(DLQ, statuses('responseStatus', "Status of the destination's last answer.")),
    row(EVERYWHERE, into('fromMs', time('fromDate', 'Not before this Unix time in milliseconds.'))),
    row(EVERYWHERE, into('toMs', time('toDate', 'Not after this Unix time in milliseconds.'))),
    row(EVERYWHERE, amount ? counted(amount) : CANCEL_COUNT),
    row([...DLQ, 'logs', 'unfinished'], CURSOR),
    row(['dlqList', 'logs'], ORDER),
  ];
}

function row<Row extends Parameter>(
  uses: readonly FilterUse[],
  filter: Row,
): { uses: readonly FilterUse[]; filter: Row } {
  return { uses, filter };
}

function one<const Name extends string>(name: Name, meaning: string): Parameter<Name, string[]> {
  return parameter(name, meaning, Type.String(), (given) => [singleValue(name, given)]);
}

const ORDER = parameter(
  'order',
  'Newest or oldest first.',
  Type.Union([Type.Literal('latestFirst'), Type.Literal('earliestFirst')], { default: 'latestFirst' }),
  (given): Filters['order'] => {
    const text = singleValue('order', given);
    if (text === 'earliestFirst' || text === 'latestFirst') return text;
    throw invalidParameter('order', 'earliestFirst or latestFirst is needed');
  },
);

/** The parameter `count`. */
export function counted({ countDefault, countMax }: Amount): Parameter<'count', number> {
  const schema = Type.Integer({ minimum: 1, default: countDefault });
  return parameter('count', `How many at most. More than ${countMax} is lowered to it.`, schema, (given) =>
    Math.min(countIn(given), countMax),
  );
}

/** Official clients send this count with every cancel unasked, and the newest promises that all that match are cancelled. */
const SENT_UNASKED = 100;

const CANCEL_COUNT = parameter(
  'count',
  `How many at most, oldest first. Without it, and with ${SENT_UNASKED}, which clients send unasked: all that match.`,
  Type.Integer({ minimum: 1, deprecated: true }),
  (given): number | undefined => {
    const count = countIn(given);
    return count === SENT_UNASKED ? undefined : count;
  },
);

function countIn(given: Given): number {
  const count = wholeNumber('count', singleValue('count', given));
  if (count === 0) throw invalidParameter('count', 'a number of at least 1 is needed');
  return count;
}

/** The filters that requests to one route may have. */
export interface MessageFilters {
  use: FilterUse;
  rows: readonly ReturnType<typeof table>[number]['filter'][];
  countDefault: number | undefined;
  /** Whether the request changes all messages that match; then the filters may also come in the body. */
  isBulk: boolean;
  /** The parameters that still have an effect when ids are given. */
  readsByIds: ReadonlySet<string>;
}

/** Without an amount the request is for everything that matches. */
export function messageFilters(use: FilterUse, amount?: Amount): MessageFilters {
  const rows = table(amount).flatMap(({ uses, filter }) => (uses.includes(use) ? filter : []));
  return {
    use,
    rows,
    countDefault: amount?.countDefault,
    isBulk: use === 'cancel' || use === 'dlqBulk',
    readsByIds: isLong(use) ? PAGING : NOTHING,
  };
}

/** The messages that a list or a bulk action selects. When `ids` is there, the attributes are ignored. */
export interface Filters {
  /** `messageIds` or `dlqIds`. Empty: selects nothing. */
  ids?: string[];
  attributes: DeadFilter & LogFilter & UnfinishedFilter;
  count?: number;
  cursor?: string;
  order: 'latestFirst' | 'earliestFirst';
}

/**
 * Reads the filters from the raw query and the parsed JSON body (`undefined` when there is none). Throws `ApiError` 400
 * that names the parameter.
 */
export function readFilters(
  { use, rows, countDefault, isBulk }: MessageFilters,
  rawQuery: string,
  body?: unknown,
): Filters {
  const given = filtersFor(rows, { rawQuery, body, isBulk }, () => true);
  const messageIds = given.get('messageIds');
  if (messageIds && !meansIds(messageIds, isBulk)) given.delete('messageIds');
  const { ids: named } = valuesOf(
    rows.filter(({ isIds }) => isIds),
    given,
  );
  if (named && !isLong(use)) return { ids: named, attributes: {}, order: 'latestFirst' };
  // A list by ids can still be longer than a page.
  const read = named ? rows.filter(({ name }) => PAGING.has(name)) : rows;
  const { ids: _, count = countDefault, cursor, order = 'latestFirst', ...attributes } = valuesOf(read, given);
  return {
    ...(named && { ids: named }),
    attributes,
    ...(count !== undefined && { count }),
    ...(cursor !== undefined && { cursor }),
    order,
  };
}

const PAGING: ReadonlySet<string> = new Set(['count', 'cursor', 'order']);
const NOTHING: ReadonlySet<string> = new Set();

/** Whether a request by ids can have more results than a page holds. */
function isLong(use: FilterUse): boolean {
  return use === 'logs' || use === 'unfinished';
}

/** In a body, an empty list of message ids selects everything, but an empty list of DLQ ids selects nothing. */
function meansIds({ values, from }: Given, isBulk: boolean): boolean {
  if (values.length === 0 && from === 'query' && isBulk) throw invalidParameter('messageIds', 'it has no value');
  return values.length > 0;
}
