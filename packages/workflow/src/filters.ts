/** Which runs a request of the client is about. */
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

/** By ids, by what they have in common, or all; at most `count` at a time. */
export type DlqSelection =
  | { dlqIds: string | string[] }
  | { filter: RunFilter; count?: number; cursor?: string }
  | { all: true; count?: number; cursor?: string };

export type RunSelection =
  | { workflowRunIds: string[] }
  | { filter: CancelFilter; count?: number }
  | { all: true; count?: number };

/** As the hosted service's clients ask for. */
const COUNT = 100;

/** Throws `WorkflowError` for a selection that came out empty: the server takes a query without a condition for all runs. */
export function queryOf(selection: DlqSelection | RunSelection): Query {
  const { dlqIds, workflowRunIds, filter, all, count = COUNT, cursor }: Query = { ...selection };
  if (dlqIds !== undefined) return { dlqIds: filled('dlqIds', dlqIds) };
  if (workflowRunIds !== undefined) return { workflowRunIds: filled('workflowRunIds', workflowRunIds) };
  if (filter) return { ...conditionsOf(filter), count, cursor };
  if (all) return { count, cursor };
  throw new WorkflowError(`The request has neither ids nor a filter; ${FOR_ALL}`);
}

/** A URL is meant exactly, and one that others begin with as a beginning. Throws as `queryOf` does. */
export function cancelQueryOf(selection: RunSelection): Query {
  const { workflowUrlStartingWith, workflowUrl, ...rest } = queryOf(selection);
  if (workflowUrlStartingWith && workflowUrl)
    throw new WorkflowError('workflowUrl and workflowUrlStartingWith exclude each other');
  if (workflowUrlStartingWith) return { ...rest, workflowUrl: workflowUrlStartingWith };
  return workflowUrl ? { ...rest, workflowUrl, workflowUrlExactMatch: true } : rest;
}

/** A path with its query: lists as repeated parameters, dates in milliseconds. */
export function pathOf(path: string, query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, values] of Object.entries(query)) {
    for (const value of [values ?? []].flat())
      parameters.append(name, value instanceof Date ? String(value.getTime()) : String(value));
  }
  return parameters.size === 0 ? path : `${path}?${parameters}`;
}

const FOR_ALL = 'for all runs use { all: true }';

/** Members without a value are none. */
function conditionsOf(filter: object): object {
  const conditions = Object.entries(filter).filter(([, value]) => value !== undefined && value !== null);
  if (conditions.length === 0) throw new WorkflowError(`filter has no member with a value; ${FOR_ALL}`);
  for (const [name, value] of conditions) filled(`filter.${name}`, value);
  return Object.fromEntries(conditions);
}

/** Throws `WorkflowError` where there is no value, or an empty one. */
export function filled<T>(name: string, values: T): T {
  const all: unknown[] = [values].flat();
  if (all.length > 0 && all.every((value) => value !== undefined && value !== null && value !== '')) return values;
  throw new WorkflowError(`${name} ${all.length === 0 ? 'has no values' : 'has an empty value'}; ${FOR_ALL}`);
}
