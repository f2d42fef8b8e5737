/** The filters of requests that list workflow runs or their events, or change several runs (contract W 17.2, 17.3, 21.2). */
import { Type } from '@sinclair/typebox';
import type { PageRequest } from '../../engine/lists/page.ts';
import {
  type FailureCallbackState,
  LOG_STATES,
  type LogState,
  RUN_LOG_STATES,
  type RunLogState,
} from '../../engine/model.ts';
import type { ActiveRunFilter } from '../../engine/runs/dead/dead-run-store.ts';
import type { RunEventFilter, RunFilter } from '../../engine/runs/logs/log-store.ts';
import type { RunState } from '../../workflow/model.ts';
import type { StepState } from '../../workflow/step-summaries.ts';
import { type CountLimits, countParameter, NO_NAMES, pageRequestOf, readFilters } from '../messages/filters.ts';
import {
  CURSOR,
  collectValues,
  flag,
  ids,
  into,
  invalidParameter,
  pageCount,
  parameter,
  readQuery,
  singleValue,
  statuses,
  text,
  texts,
  time,
  valuesOf,
  wholeNumber,
  withCommas,
  withEscapedCommas,
  words,
} from '../requests/parameters.ts';

/** Filters by attributes that the trigger of a run sets. */
const TRIGGER_FILTERS = [
  texts('label', 'One of the labels of the run.'),
  texts('callerIp', 'Address that triggered the run.'),
  into('callerIp', texts('callerIP', 'The same as callerIp.')),
  texts('flowControlKey', 'Flow-control key of the run.'),
];

const CANCEL_COUNT_DEFAULT = 100;

/** The parameters of a bulk cancel. */
export const CANCEL_PARAMETERS = [
  withEscapedCommas(
    ids('workflowRunIds', 'The runs with these ids; all other filters are ignored then.', 'nothingUnlessInBulkQuery'),
  ),
  withCommas(texts('workflowUrl', 'Prefix of the workflow URL.')),
  into('isExact', flag('workflowUrlExactMatch', 'Whether workflowUrl must match the whole URL.')),
  texts('host', 'Host of the workflow.'),
  withCommas(texts('path', 'Path of the workflow.')),
  ...TRIGGER_FILTERS,
  into('fromMs', time('fromDate', 'Runs created not before this Unix time in milliseconds.')),
  into('toMs', time('toDate', 'Runs created not after this Unix time in milliseconds.')),
  {
    ...countParameter({ countDefault: CANCEL_COUNT_DEFAULT, countMax: Number.MAX_SAFE_INTEGER }),
    meaning: 'Maximum number; with filters as JSON, all that match by default.',
  },
];

const FAILURE_STATES: ReadonlyMap<string, readonly FailureCallbackState[]> = new Map([
  ['CALLBACK_INPROGRESS', ['inProgress']],
  ['CALLBACK_SUCCESS', ['success']],
  ['CALLBACK_FAIL', ['fail']],
  ['CALLBACK_CANCELED', ['canceled']],
] as const);

/** The filters of lists and bulk actions on the DLQ of runs. */
export function deadRunFilters(limits: CountLimits, isBulk: boolean) {
  const rows = [
    ids('dlqIds', 'The entries with these ids; all other filters are ignored then.', 'nothingUnlessInBulkQuery'),
    into('url', withCommas(texts('workflowUrl', 'URL of the workflow.'))),
    withCommas(texts('url', 'The same as workflowUrl.')),
    into('runId', withCommas(text('workflowRunId', 'The runs with this id.'))),
    into('runCreatedAtMs', time('workflowCreatedAt', 'The run created at this Unix time in milliseconds.')),
    ...TRIGGER_FILTERS,
    into('failureCallback', words('failureFunctionState', 'State of the failure callback.', FAILURE_STATES)),
    into('failureCallback', words('failureCallbackState', 'The same as failureFunctionState.', FAILURE_STATES)),
    statuses('responseStatus', 'Status of the last response.'),
    into('fromMs', time('fromDate', 'Runs that failed not before this Unix time in milliseconds.')),
    into('toMs', time('toDate', 'Runs that failed not after this Unix time in milliseconds.')),
    countParameter(limits),
    CURSOR,
  ];
  return { rows, isBulk, usedWithIds: NO_NAMES };
}

/** The runs that a bulk cancel selects. */
export type CancelRequest = { ids: string[] } | { filter: ActiveRunFilter; count?: number };

/**
 * `body`: the parsed JSON body, which older clients send instead of a query; `undefined` if there is none. Throws
 * `ApiError` 400.
 */
export function readCancelRequest(rawQuery: string, body: unknown): CancelRequest {
  const read = readFilters({ rows: CANCEL_PARAMETERS, isBulk: true, usedWithIds: NO_NAMES }, rawQuery, body);
  if (read.ids) return { ids: read.ids };
  const countDefault = body === undefined ? CANCEL_COUNT_DEFAULT : undefined;
  const { ids: _, workflowUrl, isExact, count = countDefault, ...others } = read;
  const filter = { ...others, ...(workflowUrl && { [isExact ? 'url' : 'urlPrefix']: workflowUrl }) };
  return count === undefined ? { filter } : { filter, count };
}

/** Runs on one page of the grouped view. */
const RUNS_PAGE_MAX = 10;
/** Events on one page of the flat view. */
const EVENTS_PAGE_MAX = 1000;
/** No body is longer, and PostgreSQL accepts no length above 2^31. */
const BODY_BYTES_MAX = 2 ** 30;

const RUN_STATES = ['RUN_STARTED', 'RUN_SUCCESS', 'RUN_FAILED', 'RUN_CANCELED'] as const satisfies RunState[];
const STEP_STATES = [
  'STEP_PROGRESS',
  'STEP_RETRY',
  'STEP_PARKED',
  'STEP_SUCCESS',
  'STEP_FAILED',
  'STEP_CANCELED',
] as const satisfies StepState[];

type EventState = LogState | RunLogState;

const EVENT_STATE_NAMES = [...RUN_LOG_STATES, ...LOG_STATES] as const;

/**
 * The names that the `state` filter of events accepts. Events spell CANCELLED as CANCELED; IN_PROGRESS is a group of
 * states (contract W 19.2).
 */
const EVENT_STATES: ReadonlyMap<string, readonly EventState[]> = new Map<string, readonly EventState[]>([
  ...EVENT_STATE_NAMES.map((state): [string, EventState[]] => [state, [state]]),
  ['CANCELLED', ['CANCELED']],
  ['IN_PROGRESS', ['ACTIVE', 'RETRY', 'ERROR', 'STEP_PARKED']],
]);

/** The names that the `state` filter of runs accepts: states of runs and of their steps. */
const RUN_AND_STEP_STATES = new Map<string, readonly (RunState | StepState)[]>(
  [...RUN_STATES, ...STEP_STATES].map((state) => [state, [state]]),
);

const LOG_FILTERS = [
  into('runId', withEscapedCommas(texts('workflowRunId', 'All runs with this id, also earlier ones.'))),
  into('runCreatedAtMs', time('workflowCreatedAt', 'The run created at this Unix time in milliseconds.')),
  into('runUrl', withCommas(texts('workflowUrl', 'URL of the workflow (exact).'))),
  texts('messageId', 'A message of the run.'),
  texts('label', 'One of the labels of the run.'),
  texts('flowControlKey', 'Flow-control key of the run.'),
  texts('callerIp', 'Address that started the run.'),
  texts('host', 'Host of the URL of the run.'),
  withCommas(texts('path', 'Path of the URL of the run.')),
];

const RUN_NAMES = texts('workflowRuns', 'These runs, each as id@createdAt; all other filters are then ignored.');

/**
 * The comma between two run names, which may be escaped, because QStash documents the list as one string. A comma within
 * an id does not match.
 */
const RUN_NAME_SEPARATOR = /(?<=@\d{1,16}),+/;

const NAMED_RUNS = into(
  'runs',
  withCommas({
    ...RUN_NAMES,
    read: (given) => {
      const names = given.values.flatMap((value) => value.split(RUN_NAME_SEPARATOR)).filter((name) => name !== '');
      return RUN_NAMES.read({ ...given, values: names })?.map(readRunName);
    },
  }),
);

const RUN_FILTERS = [
  words('state', 'State of the run, or of one of its steps.', RUN_AND_STEP_STATES),
  into('fromMs', time('fromDate', 'Runs created not before this Unix time in milliseconds.')),
  into('toMs', time('toDate', 'Runs created not after this Unix time in milliseconds.')),
];

const TRIM_BODY = parameter(
  'trimBody',
  'Number of bytes shown of each body; -1 for whole bodies.',
  Type.Integer({ minimum: -1, default: -1 }),
  (given) => {
    const text = singleValue('trimBody', given);
    return text === '' || text === '-1' ? undefined : Math.min(wholeNumber('trimBody', text), BODY_BYTES_MAX);
  },
);

const RUNS_PAGE = [into('bodyBytesMax', TRIM_BODY), pageCount(RUNS_PAGE_MAX), CURSOR];

export const RUNS_QUERY = [...LOG_FILTERS, NAMED_RUNS, ...RUN_FILTERS, ...RUNS_PAGE];

export const EVENTS_QUERY = [
  ...LOG_FILTERS,
  words('state', 'State in the event; IN_PROGRESS is ACTIVE, RETRY, ERROR and STEP_PARKED.', EVENT_STATES),
  into('fromMs', time('fromDate', 'Not before this Unix time in milliseconds.')),
  into('toMs', time('toDate', 'Not after this Unix time in milliseconds.')),
  pageCount(EVENTS_PAGE_MAX),
  CURSOR,
];

export interface RunsRequest {
  filter: RunFilter & { stepState?: StepState[] };
  page: PageRequest;
  /** The maximum length of each body; absent for whole bodies. */
  bodyBytesMax?: number;
}

/** Reads the query of the grouped view. Throws `ApiError` 400 that names the parameter. */
export function readRunsQuery(rawQuery: string): RunsRequest {
  const given = collectValues(RUNS_QUERY, rawQuery);
  const { bodyBytesMax, ...page } = valuesOf(RUNS_PAGE, given);
  const request = { page: pageRequestOf(page, RUNS_PAGE_MAX), ...(bodyBytesMax !== undefined && { bodyBytesMax }) };
  const { runs } = valuesOf([NAMED_RUNS], given);
  if (runs) return { ...request, filter: { runs } };
  const { state: states, ...filter } = valuesOf([...LOG_FILTERS, ...RUN_FILTERS], given);
  for (const url of filter.runUrl ?? []) {
    if (!/^https?:\/\//i.test(url)) throw invalidParameter('workflowUrl', 'a URL with http:// or https:// is needed');
  }
  const state = RUN_STATES.filter((name) => states?.includes(name));
  const stepState = STEP_STATES.filter((name) => states?.includes(name));
  const stateFilter = { ...(state.length > 0 && { state }), ...(stepState.length > 0 && { stepState }) };
  return { ...request, filter: { ...filter, ...stateFilter } };
}

/** Reads the query of the flat view. Throws `ApiError` 400 that names the parameter. */
export function readEventsQuery(rawQuery: string): { filter: RunEventFilter; page: PageRequest } {
  const { count, cursor, ...filter } = readQuery(rawQuery, EVENTS_QUERY);
  return { filter, page: pageRequestOf({ count, cursor }, EVENTS_PAGE_MAX) };
}

/** Reads `id@createdAt`. The last `@` separates the two, since an id may contain `@`. */
function readRunName(text: string): { id: string; createdAtMs: number } {
  const at = text.lastIndexOf('@');
  if (at < 1) throw invalidParameter('workflowRuns', 'elements are id@createdAt');
  return { id: text.slice(0, at), createdAtMs: wholeNumber('workflowRuns', text.slice(at + 1)) };
}
