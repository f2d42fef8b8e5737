/** Derives the operations of the command line, and their options, from the route table. */

import { pathOf } from '../../api/openapi.ts';
import { describedRoutes } from '../../api/routes.ts';

export interface Operation {
  method: string;
  /** With `{names}` as placeholders for values. */
  path: string;
  /** The meanings of the query parameters, by name. */
  query?: Readonly<Record<string, string>>;
  /** The meanings of the message options, by header name. */
  headers?: Readonly<Record<string, string>>;
}

/** Operations by operation id. */
export type Operations = Readonly<Record<string, Operation>>;

/** Headers that are not options of the command line: the headers of callbacks, and headers that only libraries set. */
const UNTYPED = /^Upstash-((Failure-)?Callback-.*|Feature-Set|Workflow-(?!RunId).*)$/;

export function deriveOperations(): Operations {
  const entries = describedRoutes().map((route): [string, Operation] => {
    const { operationId, method, takes: { filters, query = [], configHeaders = [] } = {} } = route;
    const parameters = meaningsOf([...(filters?.rows ?? []), ...query].filter(({ schema }) => !schema['deprecated']));
    const headers = meaningsOf(configHeaders.filter(({ name, isUnlisted }) => !isUnlisted && !UNTYPED.test(name)));
    return [
      operationId,
      { method, path: pathOf(route), ...(parameters && { query: parameters }), ...(headers && { headers }) },
    ];
  });
  return Object.fromEntries(entries);
}

function meaningsOf(rows: readonly { name: string; meaning: string }[]): Record<string, string> | undefined {
  return rows.length === 0 ? undefined : Object.fromEntries(rows.map(({ name, meaning }) => [name, meaning]));
}
