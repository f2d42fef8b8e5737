/** Which workflow runs does a request mean? The filters of the bulk cancel and of the DLQ of runs (contract W 17.2, 21.2). */
import { type TSchema, Type } from '@sinclair/typebox';
import type { ActiveRunFilter, DeadRunFilter } from '../engine/dead-runs.ts';
import type { FailureCallbackState } from '../engine/model.ts';
import { ApiError } from '../protocol/errors.ts';
import { type Amount, different, readCount, shown } from './filters.ts';
import { FILTER_VALUES_MAX, IDS_MAX } from './limits.ts';
import { invalidParameter, type Parameters, readParameters, singleValue, wholeNumber } from './parameters.ts';
import type { QueryParameter } from './takes.ts';

const several = (schema: TSchema, maxItems = FILTER_VALUES_MAX): TSchema => Type.Array(schema, { maxItems });
const Ms = Type.Integer({ minimum: 0 });

function parameter(name: string, meaning: string, schema: TSchema): QueryParameter {
  return { name, meaning, schema };
}

/** What the trigger of a run has fixed. */
const OF_EVERY_RUN: readonly QueryParameter[] = [
  parameter('label', 'One of the labels of the run.', several(Type.String())),
  parameter('callerIp', 'Address that triggered the run.', several(Type.String())),
  parameter('callerIP', 'The same as callerIp.', several(Type.String())),
  parameter('flowControlKey', 'Flow-control key of the run.', several(Type.String())),
];

/** What a bulk cancel may say. */
export const CANCEL_PARAMETERS: readonly QueryParameter[] = [
  parameter(
    'workflowRunIds',
    'The runs with these ids; all other filters are ignored then.',
    several(Type.String(), IDS_MAX),
  ),
  parameter('workflowUrl', 'What the URL of the workflow begins with.', several(Type.String())),
  parameter(
    'workflowUrlExactMatch',
    'Whether workflowUrl is the whole URL.',
    Type.Union([Type.Literal('true'), Type.Literal('false')], { default: 'false' }),
  ),
  parameter('host', 'Host of the workflow.', several(Type.String())),
  parameter('path', 'Path of the workflow.', several(Type.String())),
  ...OF_EVERY_RUN,
  parameter('fromDate', 'Runs that began no earlier, as a Unix time in milliseconds.', Ms),
  parameter('toDate', 'Runs that began no later, as a Unix time in milliseconds.', Ms),
  parameter(
    'count',
    'How many at most; everything that matches where filters come as JSON.',
    Type.Integer({ minimum: 1, default: 100 }),
  ),
];

const FAILURE_STATES: ReadonlyMap<string, FailureCallbackState> = new Map([
  ['CALLBACK_INPROGRESS', 'inProgress'],
  ['CALLBACK_SUCCESS', 'success'],
  ['CALLBACK_FAIL', 'fail'],
  ['CALLBACK_CANCELED', 'canceled'],
] as const);

const FailureState = several(Type.Union([...FAILURE_STATES.keys()].map((name) => Type.Literal(name))));

/** What lists and bulk actions on the DLQ of runs may say. */
export function deadParameters({ countDefault, countMax }: Amount): readonly QueryParameter[] {
  return [
    parameter(
      'dlqIds',
      'The entries with these ids; all other filters are ignored then.',
      several(Type.String(), IDS_MAX),
    ),
    parameter('workflowUrl', 'URL of the workflow.', several(Type.String())),
    parameter('url', 'The same as workflowUrl.', several(Type.String())),
    parameter('workflowRunId', 'The runs of this id.', Type.String()),
    parameter('workflowCreatedAt', 'The run that began then, as a Unix time in milliseconds.', Ms),
    ...OF_EVERY_RUN,
    parameter('failureFunctionState', 'How the failure callback stands.', FailureState),
    parameter('failureCallbackState', 'The same as failureFunctionState.', FailureState),
    parameter('responseStatus', 'Status of the last answer.', several(Type.Integer({ minimum: 0 }))),
    parameter('fromDate', 'Runs that failed no earlier, as a Unix time in milliseconds.', Ms),
    parameter('toDate', 'Runs that failed no later, as a Unix time in milliseconds.', Ms),
    parameter(
      'count',
      `How many at most. More than ${countMax} is lowered to it.`,
      Type.Integer({ minimum: 1, ...(countDefault !== undefined && { default: countDefault }) }),
    ),
    parameter('cursor', 'Where the page before ended; take it from its answer.', Type.String()),
  ];
}

/** The runs that a bulk cancel means. */
export type CancelWish = { ids: string[] } | { filter: ActiveRunFilter; count?: number };

const CANCEL_COUNT: Amount = { countDefault: 100, countMax: Number.MAX_SAFE_INTEGER, isLowered: true };

/** `body`: the parsed JSON body, which older clients send in place of the query; `undefined` without one. Throws `ApiError` 400. */
export function readCancelWish(rawQuery: string, body: unknown): CancelWish {
  const given = read(rawQuery, body, CANCEL_PARAMETERS, 'bulk');
  const ids = idsOf(given, 'workflowRunIds');
  if (ids) return { ids };
  const filter: ActiveRunFilter = attributesOf(given);
  for (const name of ['host', 'path'] as const) {
    const values = textsOf(given, name);
    if (values) filter[name] = values;
  }
  const attribute = isExact(given) ? 'url' : 'urlPrefix';
  const urls = textsOf(given, 'workflowUrl');
  if (urls) filter[attribute] = urls;
  const count = given.get('count');
  if (count) return { filter, count: readCount(singleValue('count', count), CANCEL_COUNT) };
  return body === undefined ? { filter, count: CANCEL_COUNT.countDefault ?? Infinity } : { filter };
}

/** The failed runs that a list or a bulk action means. */
export interface DeadWish {
  /** Then nothing else counts. Empty: none is meant. */
  ids?: string[];
  filter: DeadRunFilter;
  count: number;
  cursor?: string;
}

/** Throws `ApiError` 400; a bulk action is refused where it says what nobody knows, since dropping it would widen the action. */
export function readDeadWish(rawQuery: string, body: unknown, amount: Amount, use: 'list' | 'bulk'): DeadWish {
  const given = read(rawQuery, body, deadParameters(amount), use);
  const wish: DeadWish = { filter: {}, count: amount.countDefault ?? amount.countMax };
  const ids = idsOf(given, 'dlqIds');
  if (ids) return { ...wish, ids };
  wish.filter = deadFilterOf(given);
  const count = given.get('count');
  if (count) wish.count = readCount(singleValue('count', count), amount);
  const cursor = given.get('cursor');
  if (cursor) wish.cursor = singleValue('cursor', cursor);
  return wish;
}

function deadFilterOf(given: Parameters): DeadRunFilter {
  const filter: DeadRunFilter = attributesOf(given);
  const urls = [...(textsOf(given, 'workflowUrl') ?? []), ...(textsOf(given, 'url') ?? [])];
  if (urls.length > 0) filter.url = urls;
  const runId = given.get('workflowRunId');
  if (runId) filter.runId = singleValue('workflowRunId', runId);
  const createdAt = given.get('workflowCreatedAt');
  if (createdAt) filter.runCreatedAtMs = wholeNumber('workflowCreatedAt', singleValue('workflowCreatedAt', createdAt));
  const states = ['failureFunctionState', 'failureCallbackState'].flatMap((name) =>
    (textsOf(given, name) ?? []).map((text) => failureStateOf(name, text)),
  );
  if (states.length > 0) filter.failureCallback = states;
  const statuses = textsOf(given, 'responseStatus');
  if (statuses) filter.responseStatus = statuses.map((text) => wholeNumber('responseStatus', text));
  return filter;
}

function read(rawQuery: string, body: unknown, known: readonly QueryParameter[], use: 'list' | 'bulk'): Parameters {
  const names = new Set(known.map(({ name }) => name));
  const given = readParameters(rawQuery, body, (name) => {
    if (names.has(name)) return true;
    if (use === 'bulk') throw new ApiError('invalid_query', `unknown query parameter ${shown(name)}`);
    return false;
  });
  for (const [name, { values, from }] of given) {
    if (values.length > 0 || (from === 'body' && isIdList(name))) continue;
    if (use === 'bulk') throw invalidParameter(name, 'it has no value, and leaving it out would widen the action');
    if (!isIdList(name)) given.delete(name);
  }
  return given;
}

function isIdList(name: string): boolean {
  return name === 'workflowRunIds' || name === 'dlqIds';
}

function attributesOf(given: Parameters): ActiveRunFilter & DeadRunFilter {
  const filter: ActiveRunFilter & DeadRunFilter = {};
  for (const name of ['label', 'flowControlKey'] as const) {
    const values = textsOf(given, name);
    if (values) filter[name] = values;
  }
  const callerIps = [...(textsOf(given, 'callerIp') ?? []), ...(textsOf(given, 'callerIP') ?? [])];
  if (callerIps.length > 0) filter.callerIp = callerIps;
  const from = given.get('fromDate');
  if (from) filter.fromMs = wholeNumber('fromDate', singleValue('fromDate', from));
  const to = given.get('toDate');
  if (to) filter.toMs = wholeNumber('toDate', singleValue('toDate', to));
  return filter;
}

function idsOf(given: Parameters, name: string): string[] | undefined {
  const values = given.get(name);
  return values && different(name, values, IDS_MAX);
}

function textsOf(given: Parameters, name: string): string[] | undefined {
  const values = given.get(name);
  return values && different(name, values, FILTER_VALUES_MAX);
}

function isExact(given: Parameters): boolean {
  const name = 'workflowUrlExactMatch';
  const value = given.get(name);
  const text = value ? singleValue(name, value) : 'false';
  if (text !== 'true' && text !== 'false') throw invalidParameter(name, 'true or false is needed');
  return text === 'true';
}

function failureStateOf(name: string, text: string): FailureCallbackState {
  const state = FAILURE_STATES.get(text);
  if (!state) throw invalidParameter(name, `one of ${[...FAILURE_STATES.keys()].join(', ')} is needed`);
  return state;
}
