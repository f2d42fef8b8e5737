/**
 * Reads what a list or a bulk action selects (contract M 21, W 17.2, 21.2). The table of contract M 21.2 is data: a new
 * filter is a new row. Query and JSON body are read alike; where both have the same filter, the query wins.
 */
import { type TSchema, Type } from '@sinclair/typebox';
import type { PageRequest } from '../../engine/lists/page.ts';
import { STANDINGS } from '../../engine/lists/unfinished.ts';
import { LOG_STATES, type LogState } from '../../engine/model.ts';
import { ApiError } from '../../protocol/errors.ts';
import type { ConfigHeader } from '../publishing/config-headers.ts';
import {
  CURSOR,
  type Given,
  givenFor,
  ids,
  into,
  invalidParameter,
  type Parameter,
  parameter,
  shown,
  singleValue,
  statuses,
  texts,
  time,
  type Values,
  valuesOf,
  wholeNumber,
  withCommas,
  words,
} from '../requests/parameters.ts';

/** What one list or bulk action may be asked for. */
export interface Filters<Row extends Parameter = Parameter> {
  rows: readonly Row[];
  /** Whether the request changes all that match; then the filters may also come in the body. */
  isBulk: boolean;
  /** The parameters that still have an effect when ids are given, since a list by ids can be longer than a page. */
  readsByIds: ReadonlySet<string>;
}

/** What a request may hold. Handlers read it by the same rows that the interface document shows. */
export interface Takes {
  /** Filters in the query; bulk actions read them from a JSON object in the body too (contract M 21.3). */
  filters?: Filters;
  /** Parameters of the query besides filters. */
  query?: readonly Parameter[];
  configHeaders?: readonly ConfigHeader[];
  /** Whether config headers may also be in the query. They always may on paths that end in a destination. */
  isConfiguredByQuery?: true;
  /** A JSON body of this shape, or bytes of any content type. */
  body?: TSchema | 'bytes';
}

/** What a request selects. */
export interface Selected<Filter> {
  /** When given, the filter is empty. Empty: selects nothing. */
  ids?: string[];
  filter: Filter;
  page: PageRequest;
}

export type MessageUse = 'cancel' | 'dlqList' | 'dlqBulk' | 'logs' | 'unfinished';

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
    row(NOT_DLQ, ids('messageIds', 'The messages with these ids.', 'everything')),
    row(DLQ, ids('dlqIds', 'The dead messages with these DLQ ids; all other filters are ignored then.', 'nothing')),
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
  uses: readonly MessageUse[],
  filter: Row,
): { uses: readonly MessageUse[]; filter: Row } {
  return { uses, filter };
}

function one<const Name extends string>(name: Name, meaning: string): Parameter<Name, string[]> {
  return parameter(name, meaning, Type.String(), (given) => [singleValue(name, given)]);
}

const ORDER = parameter(
  'order',
  'Newest or oldest first.',
  Type.Union([Type.Literal('latestFirst'), Type.Literal('earliestFirst')], { default: 'latestFirst' }),
  (given): PageRequest['order'] => {
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

type MessageRow = ReturnType<typeof table>[number]['filter'];

const PAGING: ReadonlySet<string> = new Set(['count', 'cursor', 'order']);
export const NOTHING: ReadonlySet<string> = new Set();

/** Without an amount the request is for everything that matches. */
export function messageFilters(use: MessageUse, amount?: Amount): Filters<MessageRow> {
  return {
    rows: table(amount).flatMap(({ uses, filter }) => (uses.includes(use) ? filter : [])),
    isBulk: use === 'cancel' || use === 'dlqBulk',
    readsByIds: use === 'logs' || use === 'unfinished' ? PAGING : NOTHING,
  };
}

/**
 * Reads `filters` from the raw query and the parsed JSON body (`undefined` when there is none). When ids are given, the
 * other filters are ignored. A filter without a value is left out. A bulk action refuses it instead, and refuses unknown
 * names too: leaving a filter out would widen the action. Throws `ApiError` 400 that names the parameter.
 */
export function readFilters<Row extends Parameter>(
  { rows, isBulk, readsByIds }: Filters<Row>,
  rawQuery: string,
  body?: unknown,
): Values<Row> {
  const given = givenFor(rows, rawQuery, body, (name) => {
    if (isBulk) throw new ApiError('invalid_query', `unknown query parameter ${shown(name)}`);
  });
  const idRows = rows.filter(({ emptyIds }) => emptyIds);
  for (const [name, { values, from }] of given) {
    if (values.length > 0) continue;
    const emptyIds = idRows.find((row) => row.name === name)?.emptyIds;
    const isInBulkQuery = isBulk && from === 'query';
    if (emptyIds && !(emptyIds === 'nothingUnlessInBulkQuery' && isInBulkQuery)) continue;
    if (isBulk) throw invalidParameter(name, 'it has no value, and leaving it out would widen the action');
    given.delete(name);
  }
  for (const { name, emptyIds } of idRows) {
    const all = emptyIds === 'everything' ? given.get(name) : undefined;
    if (all?.values.length !== 0) continue;
    if (isBulk && all.from === 'query') throw invalidParameter(name, 'it has no value');
    given.delete(name);
  }
  const named = idRows.filter(({ name }) => given.has(name));
  return valuesOf(named.length === 0 ? rows : [...named, ...rows.filter(({ name }) => readsByIds.has(name))], given);
}

type Paging = { ids?: string[] } & { [Member in 'count' | 'cursor' | 'order']?: PageRequest[Member] | undefined };

/** As `readFilters`, for a list. */
export function readSelection<Row extends Parameter>(
  filters: Filters<Row>,
  countDefault: number,
  rawQuery: string,
  body?: unknown,
): Selected<Omit<Values<Row>, keyof Paging>> {
  const { ids: named, count, cursor, order, ...filter } = readFilters(filters, rawQuery, body) as Values<Row> & Paging;
  return { ...(named && { ids: named }), filter, page: pageOf({ count, cursor, order }, countDefault) };
}

/** The first `count` items and the cursor after them. The caller reads one more item, which shows whether the list continues. */
export function cutTo<Item>(found: readonly Item[], count: number, cursorAfter: (last: Item) => string) {
  const items = found.slice(0, count);
  const last = items.at(-1);
  return { items, cursor: last && found.length > count ? cursorAfter(last) : undefined };
}

/** A missing or empty cursor begins with the first page. */
export function pageOf({ count, cursor, order = 'latestFirst' }: Paging, countDefault: number): PageRequest {
  return { count: count ?? countDefault, order, ...(cursor && { cursor }) };
}
