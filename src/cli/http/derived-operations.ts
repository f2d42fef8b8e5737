/** Which operations, and which options of each, does the command line take from the route table? */

import { pathOf } from '../../api/openapi.ts';
import { describedRoutes } from '../../api/routes.ts';

export interface Operation {
  method: string;
  /** With `{names}` for the values that belong there. */
  path: string;
  /** What each parameter of the query means, by its name. */
  query?: Readonly<Record<string, string>>;
  /** What each option of a message means, by the name of its header. */
  headers?: Readonly<Record<string, string>>;
}

/** By their ids. */
export type Operations = Readonly<Record<string, Operation>>;

/** Describes a callback or a request of a library: nobody types these as options. */
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
