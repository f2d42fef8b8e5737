/** Selects the runs that a request of the client applies to. */
import { WorkflowError } from './errors.ts';

type Query = Record<string, unknown>;

export interface UniversalFilter {
  fromDate?: Date | number;
  toDate?: Date | number;
  callerIp?: string | string[];
  label?: string | string[];
  flowControlKey?: string | string[];
}

export interface RunFilter extends UniversalFilter {
  workflowUrl?: string | string[];
  workflowRunId?: string;
  workflowCreatedAt?: number;
  failureFunctionState?: string;
}

export interface LogsFilter extends RunFilter {
  host?: string | string[];
  path?: string | string[];
  state?: 'RUN_STARTED' | 'RUN_SUCCESS' | 'RUN_FAILED' | 'RUN_CANCELED';
  messageId?: string;
}

export interface CancelFilter extends UniversalFilter {
  workflowUrl?: string | string[];
  workflowUrlStartingWith?: string | string[];
  host?: string | string[];
  path?: string | string[];
}

/** Selects by ids, by a filter, or all; at most `count` per request. */
export type DlqSelection =
  | { dlqIds: string | string[] }
  | { filter: RunFilter; count?: number; cursor?: string }
  | { all: true; count?: number; cursor?: string };

export type RunSelection =
  | { workflowRunIds: string[] }
  | { filter: CancelFilter; count?: number }
  | { all: true; count?: number };

/** The page size that the hosted service's clients use. */
const COUNT = 100;

/** Throws `WorkflowError` for an empty selection: the server would apply a query without a condition to all runs. */
export function queryOf(selection: DlqSelection | RunSelection): Query {
  const { dlqIds, workflowRunIds, filter, all, count = COUNT, cursor }: Query = { ...selection };
  if (dlqIds !== undefined) return { dlqIds: filled('dlqIds', dlqIds) };
  if (workflowRunIds !== undefined) return { workflowRunIds: filled('workflowRunIds', workflowRunIds) };
  if (filter) return { ...conditionsOf(filter), count, cursor };
  if (all) return { count, cursor };
  throw new WorkflowError(`The request has neither ids nor a filter; ${FOR_ALL}`);
}

/** Like `queryOf`, with an exact match for a URL and a prefix match for the start of a URL. Throws like `queryOf`. */
export function cancelQueryOf(selection: RunSelection): Query {
  const { workflowUrlStartingWith, workflowUrl, ...rest } = queryOf(selection);
  if (workflowUrlStartingWith && workflowUrl)
    throw new WorkflowError('workflowUrl and workflowUrlStartingWith exclude each other');
  if (workflowUrlStartingWith) return { ...rest, workflowUrl: workflowUrlStartingWith };
  return workflowUrl ? { ...rest, workflowUrl, workflowUrlExactMatch: true } : rest;
}

/** A path with its query: a list becomes repeated parameters, a date becomes milliseconds. */
export function pathOf(path: string, query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, values] of Object.entries(query)) {
    for (const value of [values ?? []].flat())
      parameters.append(name, value instanceof Date ? String(value.getTime()) : String(value));
  }
  return parameters.size === 0 ? path : `${path}?${parameters}`;
}

const FOR_ALL = 'for all runs use { all: true }';

/** The members of the filter that have a value. */
function conditionsOf(filter: object): object {
  const conditions = Object.entries(filter).filter(([, value]) => value !== undefined && value !== null);
  if (conditions.length === 0) throw new WorkflowError(`filter has no member with a value; ${FOR_ALL}`);
  for (const [name, value] of conditions) filled(`filter.${name}`, value);
  return Object.fromEntries(conditions);
}

/** Throws `WorkflowError` if a value is missing or empty. */
export function filled<T>(name: string, values: T): T {
  const all: unknown[] = [values].flat();
  if (all.length > 0 && all.every((value) => value !== undefined && value !== null && value !== '')) return values;
  throw new WorkflowError(`${name} ${all.length === 0 ? 'has no values' : 'has an empty value'}; ${FOR_ALL}`);
}
