/**
 * Reads which workflow runs a request selects: the filters of the bulk cancel and of the DLQ of runs (contract W 17.2,
 * 21.2).
 */
import type { FailureCallbackState } from '../engine/model.ts';
import type { ActiveRunFilter, DeadRunFilter } from '../engine/runs/dead-run-store.ts';
import { type Amount, counted } from './filters.ts';
import { CURSOR, flag, ids, statuses, text, texts, time, words } from './parameter-kinds.ts';
import {
  type FilterRequest,
  filtersFor,
  into,
  type Parameter,
  valuesOf,
  withCommas,
  withEscapedCommas,
} from './parameters.ts';

/** Attributes that the trigger of a run has set. */
const OF_EVERY_RUN = [
  texts('label', 'One of the labels of the run.'),
  texts('callerIp', 'Address that triggered the run.'),
  into('callerIp', texts('callerIP', 'The same as callerIp.')),
  texts('flowControlKey', 'Flow-control key of the run.'),
];

const CANCELLED_DEFAULT = 100;

/** The parameters of a bulk cancel. */
export const CANCEL_PARAMETERS = [
  withEscapedCommas(ids('workflowRunIds', 'The runs with these ids; all other filters are ignored then.')),
  withCommas(texts('workflowUrl', 'What the URL of the workflow begins with.')),
  into('isExact', flag('workflowUrlExactMatch', 'Whether workflowUrl is the whole URL.')),
  texts('host', 'Host of the workflow.'),
  withCommas(texts('path', 'Path of the workflow.')),
  ...OF_EVERY_RUN,
  into('fromMs', time('fromDate', 'Runs that began no earlier, as a Unix time in milliseconds.')),
  into('toMs', time('toDate', 'Runs that began no later, as a Unix time in milliseconds.')),
  {
    ...counted({ countDefault: CANCELLED_DEFAULT, countMax: Number.MAX_SAFE_INTEGER }),
    meaning: 'How many at most; everything that matches where filters come as JSON.',
  },
];

const FAILURE_STATES: ReadonlyMap<string, readonly FailureCallbackState[]> = new Map([
  ['CALLBACK_INPROGRESS', ['inProgress']],
  ['CALLBACK_SUCCESS', ['success']],
  ['CALLBACK_FAIL', ['fail']],
  ['CALLBACK_CANCELED', ['canceled']],
] as const);

/** The parameters of lists and bulk actions on the DLQ of runs. */
export function deadParameters(amount: Amount) {
  return [
    ids('dlqIds', 'The entries with these ids; all other filters are ignored then.'),
    into('url', withCommas(texts('workflowUrl', 'URL of the workflow.'))),
    withCommas(texts('url', 'The same as workflowUrl.')),
    into('runId', withCommas(text('workflowRunId', 'The runs of this id.'))),
    into('runCreatedAtMs', time('workflowCreatedAt', 'The run that began then, as a Unix time in milliseconds.')),
    ...OF_EVERY_RUN,
    into('failureCallback', words('failureFunctionState', 'How the failure callback stands.', FAILURE_STATES)),
    into('failureCallback', words('failureCallbackState', 'The same as failureFunctionState.', FAILURE_STATES)),
    statuses('responseStatus', 'Status of the last answer.'),
    into('fromMs', time('fromDate', 'Runs that failed no earlier, as a Unix time in milliseconds.')),
    into('toMs', time('toDate', 'Runs that failed no later, as a Unix time in milliseconds.')),
    counted(amount),
    CURSOR,
  ];
}

/** The runs that a bulk cancel selects. */
export type CancelRequest = { ids: string[] } | { filter: ActiveRunFilter; count?: number };

/**
 * `body`: the parsed JSON body, which older clients send instead of a query; `undefined` when there is none. Throws
 * `ApiError` 400.
 */
export function readCancelRequest(rawQuery: string, body: unknown): CancelRequest {
  const read = valuesOrIds(CANCEL_PARAMETERS, { rawQuery, body, isBulk: true });
  if (read.ids) return { ids: read.ids };
  const countDefault = body === undefined ? CANCELLED_DEFAULT : undefined;
  const { ids: _, workflowUrl, isExact, count = countDefault, ...others } = read;
  const filter = { ...others, ...(workflowUrl && { [isExact ? 'url' : 'urlPrefix']: workflowUrl }) };
  return count === undefined ? { filter } : { filter, count };
}

/** The failed runs that a list or a bulk action selects. */
export interface DeadRequest {
  /** When given, everything else is ignored. Empty: selects nothing. */
  ids?: string[];
  filter: DeadRunFilter;
  count: number;
  cursor?: string;
}

/**
 * Throws `ApiError` 400. A bulk action with an unknown parameter is refused, since ignoring it would widen the action.
 */
export function readDeadRequest(rawQuery: string, body: unknown, amount: Amount, use: 'list' | 'bulk'): DeadRequest {
  const read = valuesOrIds(deadParameters(amount), { rawQuery, body, isBulk: use === 'bulk' });
  const { ids: named, count = amount.countDefault ?? amount.countMax, cursor, ...filter } = read;
  return { ...(named && { ids: named }), filter, count, ...(cursor !== undefined && { cursor }) };
}

/** When ids are given, all other parameters are ignored. */
function valuesOrIds<Row extends Parameter>(rows: readonly Row[], request: FilterRequest) {
  const given = filtersFor(rows, request, ({ from }) => from === 'body' || !request.isBulk);
  const idRows = rows.filter(({ isIds }) => isIds);
  const named = idRows.filter(({ name }) => given.has(name));
  return valuesOf(named.length > 0 ? named : rows, given);
}
