/** Serves workflows on Cloudflare: as a Worker (`export default serve(...)`), and as a Pages function. */
import { type Handler, respondWeb } from './http.ts';
import { handlerOf } from './serve.ts';
import { createWorkflow, handlerOfMany, type ServeManyOptions, type Workflows } from './serve-many.ts';
import type { RouteFunction, WorkflowServeOptions } from './workflow.ts';

export type { WorkflowBindings } from './hono.ts';
export { createWorkflow };

type Variables = Record<string, string | undefined>;

export type PagesHandlerArgs = [{ request: Request; env: Variables }];
export type WorkersHandlerArgs = [Request, Variables];

type Fetch = (...args: PagesHandlerArgs | WorkersHandlerArgs) => Promise<Response>;

/** Serves one workflow, at any path. */
export function serve<TInitialPayload = unknown, TResult = unknown>(
  routeFunction: RouteFunction<TInitialPayload, TResult>,
  options?: WorkflowServeOptions<TInitialPayload, TResult>,
): { fetch: Fetch } {
  return { fetch: fetchOf(handlerOf(routeFunction, options)) };
}

/** Serves several workflows, each by its name as the last segment of the path. */
export function serveMany(workflows: Workflows, options?: ServeManyOptions): { fetch: Fetch } {
  return { fetch: fetchOf(handlerOfMany(workflows, options)) };
}

function fetchOf(handle: Handler): Fetch {
  return (first, env?: Variables) =>
    'request' in first ? respondWeb(handle, first.request, first.env) : respondWeb(handle, first, env);
}
