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

/** Throws `WorkflowError` for a list without ids: it could be taken for all. */
export function queryOf(selection: DlqSelection | RunSelection): Query {
  if ('dlqIds' in selection) return { dlqIds: filled('dlqIds', selection.dlqIds) };
  if ('workflowRunIds' in selection) return { workflowRunIds: filled('workflowRunIds', selection.workflowRunIds) };
  const { count = COUNT } = selection;
  const cursor = 'cursor' in selection ? selection.cursor : undefined;
  return 'all' in selection ? { count, cursor } : { ...selection.filter, count, cursor };
}

/** A URL is meant exactly, and one that others begin with as a beginning. */
export function cancelQueryOf(selection: RunSelection): Query {
  if (!('filter' in selection)) return queryOf(selection);
  const { workflowUrlStartingWith, workflowUrl, ...rest } = selection.filter;
  if (workflowUrlStartingWith && workflowUrl)
    throw new WorkflowError('workflowUrl and workflowUrlStartingWith exclude each other');
  const url = workflowUrlStartingWith
    ? { workflowUrl: workflowUrlStartingWith }
    : workflowUrl && { workflowUrl, workflowUrlExactMatch: true };
  return { ...rest, ...url, count: selection.count ?? COUNT };
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

function filled<T>(name: string, ids: T): T {
  if (Array.isArray(ids) && ids.length === 0)
    throw new WorkflowError(`${name} has no ids; for all runs use { all: true }`);
  return ids;
}
