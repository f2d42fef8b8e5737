/** Workflows in Hono, on every runtime that it has: `app.post('/workflow', serve(...))`. */
import { createWorkflow, routesOf, type ServeManyOptions, type Workflows } from './many.ts';
import { serve as serveWeb } from './serve.ts';
import type { RouteFunction, WorkflowServeOptions } from './types.ts';

export { createWorkflow };

/** The variables of a worker. */
export interface WorkflowBindings {
  QSTASH_TOKEN: string;
  QSTASH_URL?: string;
  QSTASH_CURRENT_SIGNING_KEY?: string;
  QSTASH_NEXT_SIGNING_KEY?: string;
  UPSTASH_WORKFLOW_URL?: string;
}

/** What is read of a `Context`. */
export interface HonoContext {
  // biome-ignore lint/suspicious/noExplicitAny: an app declares its bindings itself
  env: any;
  req: { raw: Request; url: string };
}

export type HonoHandler = (context: HonoContext) => Promise<Response>;

/** Serves one workflow, whatever the path. */
export function serve<TInitialPayload = unknown, TResult = unknown>(
  routeFunction: RouteFunction<TInitialPayload, TResult>,
  options?: WorkflowServeOptions<TInitialPayload, TResult>,
): HonoHandler {
  return ({ env, req }) => {
    const isOfWorker = env && typeof env === 'object' && 'QSTASH_TOKEN' in env;
    return serveWeb(routeFunction, { ...(isOfWorker && { env }), ...options }).handler(req.raw);
  };
}

/** Serves each workflow under the last segment of the path. */
export function serveMany(workflows: Workflows, options?: ServeManyOptions): HonoHandler {
  const find = routesOf(workflows, options, (workflow) => serve(workflow.routeFunction, workflow.options));
  return async (context) => {
    const found = find(context.req.url);
    return found instanceof Response ? found : found(context);
  };
}
