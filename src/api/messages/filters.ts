/**
 * Reads the filters, the ids and the page of a list or a bulk action (contract M 21, W 17.2, 21.2). The parameters are
 * the table of contract M 21.2 as data. Query and JSON body have the same filters; the query takes precedence.
 */
import { type TSchema, Type } from '@sinclair/typebox';
import type { PageRequest } from '../../engine/lists/page.ts';
import { UNFINISHED_STATES } from '../../engine/lists/unfinished.ts';
import { LOG_STATES, type LogState } from '../../engine/model.ts';
import { ApiError } from '../../protocol/errors.ts';
import type { ConfigHeader } from '../publishing/config-headers.ts';
import {
  CURSOR,
  collectValues,
  ids,
  into,
  invalidParameter,
  type Parameter,
  type ParameterValues,
  parameter,
  shortened,
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

/** The parameters of one list or bulk action. */
export interface Filters<Row extends Parameter = Parameter> {
  rows: readonly Row[];
  /** Whether the request changes everything that matches. If so, the JSON body may have filters too. */
  isBulk: boolean;
  /** The parameters that apply even when ids are given, such as `cursor`: a list of ids can be longer than a page. */
  usedWithIds: ReadonlySet<string>;
}

/** The query, headers and body that a route accepts. Handlers read the same rows that the OpenAPI document shows. */
export interface AcceptedInput {
  /** Filters in the query. Bulk actions also read filters from a JSON object in the body (contract M 21.3). */
  filters?: Filters;
  /** Parameters of the query besides filters. */
  query?: readonly Parameter[];
  configHeaders?: readonly ConfigHeader[];
  /** Whether the query may have config headers, which a query after an embedded destination may have in any case. */
  isConfiguredByQuery?: true;
  /** A JSON body of this shape, or bytes of any content type. */
  body?: TSchema | 'bytes';
}

/** The items that a request selects. */
export interface Selection<Filter> {
  /** If present, `filter` is empty. An empty list selects nothing. */
  ids?: string[];
  filter: Filter;
  page: PageRequest;
}

export type MessageUse = 'cancel' | 'dlqList' | 'dlqBulk' | 'logs' | 'unfinished';

/** The number of items that one request gets (contract M 21.4, 22.24, 22.39). A larger number is lowered to `countMax`. */
export interface CountLimits {
  countDefault: number;
  countMax: number;
}

/**
 * The names that the `state` filter accepts. Log entries spell CANCELLED as CANCELED; IN_PROGRESS is a group of states
 * (contract M 6.1).
 */
const STATES: ReadonlyMap<string, readonly LogState[]> = new Map<string, readonly LogState[]>([
  ...LOG_STATES.map((state): [string, readonly LogState[]] => [state, [state]]),
  ['CANCELLED', ['CANCELED']],
  ['IN_PROGRESS', ['ACTIVE', 'RETRY', 'ERROR']],
]);

const DLQ = ['dlqList', 'dlqBulk'] as const;
const NOT_DLQ = ['cancel', 'logs', 'unfinished'] as const;
const EVERYWHERE = [...DLQ, ...NOT_DLQ];

const UNFINISHED_STATE = words(
  'state',
  'waiting for its time, active in an attempt, or held back by its queue, key, origin or project.',
  new Map(UNFINISHED_STATES.map((state) => [state, [state]])),
);

/** The rows of contract M 21.2, each with the requests that accept the filter. */
function messageParameters(limits: CountLimits | undefined) {
  return [
    row([...DLQ, 'logs'], singleId('messageId', 'The message with this id.')),
    row(NOT_DLQ, ids('messageIds', 'The messages with these ids.', 'everything')),
    row(DLQ, ids('dlqIds', 'The dead messages with these DLQ ids; all other filters are ignored then.', 'nothing')),
    row(EVERYWHERE, withCommas(texts('url', 'Destination URL (exact).'))),
    row(EVERYWHERE, texts('topicName', 'URL group to which the message was published.')),
    row(DLQ, withCommas(texts('endpointName', 'Endpoint of the URL group, by its name there.'))),
    row(EVERYWHERE, texts('queueName', 'Queue of the message.')),
    row(EVERYWHERE, texts('scheduleId', 'Schedule that made the message.')),
    row(EVERYWHERE, texts('label', 'One of the labels of the message.')),
    row(EVERYWHERE, texts('flowControlKey', 'Flow-control key of the message.')),
    row(EVERYWHERE, texts('callerIp', 'Address that published the message.')),
    row(EVERYWHERE, into('callerIp', texts('callerIP', 'The same as callerIp.'))),
    row(NOT_DLQ, texts('host', 'Host of the destination.')),
    row(NOT_DLQ, withCommas(texts('path', 'Path of the destination.'))),
    row(['logs'], words('state', 'State in the log entry; IN_PROGRESS is ACTIVE, RETRY and ERROR.', STATES)),
    row(['unfinished'], into('unfinishedState', UNFINISHED_STATE)),
    row(DLQ, statuses('responseStatus', "Status of the destination's last response.")),
    row(EVERYWHERE, into('fromMs', time('fromDate', 'Not before this Unix time in milliseconds.'))),
    row(EVERYWHERE, into('toMs', time('toDate', 'Not after this Unix time in milliseconds.'))),
    row(EVERYWHERE, limits ? countParameter(limits) : CANCEL_COUNT),
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

function singleId<const Name extends string>(name: Name, meaning: string): Parameter<Name, string[]> {
  return parameter(name, meaning, Type.String(), (input) => [singleValue(name, input)]);
}

const ORDER = parameter(
  'order',
  'Newest or oldest first.',
  Type.Union([Type.Literal('latestFirst'), Type.Literal('earliestFirst')], { default: 'latestFirst' }),
  (input): PageRequest['order'] => {
    const text = singleValue('order', input);
    if (text === 'earliestFirst' || text === 'latestFirst') return text;
    throw invalidParameter('order', 'earliestFirst or latestFirst is needed');
  },
);

/** The parameter `count`. */
export function countParameter({ countDefault, countMax }: CountLimits): Parameter<'count', number> {
  const schema = Type.Integer({ minimum: 1, default: countDefault });
  return parameter('count', `Maximum number; more than ${countMax} is lowered to it.`, schema, (input) =>
    Math.min(readCount(input), countMax),
  );
}

/**
 * The default of official clients, which they send with every cancel, although their newest documentation says that all
 * matches are cancelled.
 */
const CLIENT_DEFAULT_COUNT = 100;

const CANCEL_COUNT = parameter(
  'count',
  `Maximum number, oldest first. Without it, and with ${CLIENT_DEFAULT_COUNT}, which clients send by default, all that match.`,
  Type.Integer({ minimum: 1, deprecated: true }),
  (input): number | undefined => {
    const count = readCount(input);
    return count === CLIENT_DEFAULT_COUNT ? undefined : count;
  },
);

function readCount(input: ParameterValues): number {
  const count = wholeNumber('count', singleValue('count', input));
  if (count === 0) throw invalidParameter('count', 'a number of at least 1 is needed');
  return count;
}

type MessageRow = ReturnType<typeof messageParameters>[number]['filter'];

const PAGING: ReadonlySet<string> = new Set(['count', 'cursor', 'order']);
export const NO_NAMES: ReadonlySet<string> = new Set();

/** Without `limits`, the request selects everything that matches. */
export function messageFilters(use: MessageUse, limits?: CountLimits): Filters<MessageRow> {
  return {
    rows: messageParameters(limits).flatMap(({ uses, filter }) => (uses.includes(use) ? filter : [])),
    isBulk: use === 'cancel' || use === 'dlqBulk',
    usedWithIds: use === 'logs' || use === 'unfinished' ? PAGING : NO_NAMES,
  };
}

/**
 * Reads `filters` from the raw query and the parsed JSON body (`undefined` if there is none). Ids replace the other
 * filters. A list ignores a filter without a value and a filter with an unknown name. A bulk action refuses both, because
 * it would otherwise change more than intended. Throws `ApiError` 400 that names the parameter.
 */
export function readFilters<Row extends Parameter>(
  { rows, isBulk, usedWithIds }: Filters<Row>,
  rawQuery: string,
  body?: unknown,
): Values<Row> {
  const valuesByName = collectValues(rows, rawQuery, body, (name) => {
    if (isBulk) throw new ApiError('invalid_query', `unknown query parameter ${shortened(name)}`);
  });
  const idRows = rows.filter(({ emptyIds }) => emptyIds);
  for (const [name, { values, from }] of valuesByName) {
    if (values.length > 0) continue;
    const emptyIds = idRows.find((row) => row.name === name)?.emptyIds;
    const isInBulkQuery = isBulk && from === 'query';
    if (emptyIds && !(emptyIds === 'nothingUnlessInBulkQuery' && isInBulkQuery)) continue;
    if (isBulk) throw invalidParameter(name, 'it has no value, and leaving it out would widen the action');
    valuesByName.delete(name);
  }
  for (const { name, emptyIds } of idRows) {
    const all = emptyIds === 'everything' ? valuesByName.get(name) : undefined;
    if (all?.values.length !== 0) continue;
    if (isBulk && all.from === 'query') throw invalidParameter(name, 'it has no value');
    valuesByName.delete(name);
  }
  const named = idRows.filter(({ name }) => valuesByName.has(name));
  return valuesOf(
    named.length === 0 ? rows : [...named, ...rows.filter(({ name }) => usedWithIds.has(name))],
    valuesByName,
  );
}

type Paging = { ids?: string[] } & { [Member in 'count' | 'cursor' | 'order']?: PageRequest[Member] | undefined };

/** Like `readFilters`, but also reads which page of a list is requested. */
export function readSelection<Row extends Parameter>(
  filters: Filters<Row>,
  countDefault: number,
  rawQuery: string,
  body?: unknown,
): Selection<Omit<Values<Row>, keyof Paging>> {
  const { ids: named, count, cursor, order, ...filter } = readFilters(filters, rawQuery, body) as Values<Row> & Paging;
  return { ...(named && { ids: named }), filter, page: pageRequestOf({ count, cursor, order }, countDefault) };
}

/** The first `count` of `found`, and the cursor after them. `found` has one more item if there is another page. */
export function cutToPage<Item>(found: readonly Item[], count: number, cursorAfter: (last: Item) => string) {
  const items = found.slice(0, count);
  const last = items.at(-1);
  return { items, cursor: last && found.length > count ? cursorAfter(last) : undefined };
}

/** A request without a cursor, or with an empty cursor, is for the first page. */
export function pageRequestOf({ count, cursor, order = 'latestFirst' }: Paging, countDefault: number): PageRequest {
  return { count: count ?? countDefault, order, ...(cursor && { cursor }) };
}
