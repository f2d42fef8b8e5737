/** Workflows in Hono, on every runtime that it has: `app.post('/workflow', serve(...))`. */
import { answerWeb, type Handler } from './http.ts';
import { createWorkflow, handlerOfMany, type ServeManyOptions, type Workflows } from './many.ts';
import { handlerOf } from './serve.ts';
import type { RouteFunction, WorkflowServeOptions } from './workflow.ts';

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
  return routeOf(handlerOf(routeFunction, options));
}

/** Serves each workflow under the last segment of the path. */
export function serveMany(workflows: Workflows, options?: ServeManyOptions): HonoHandler {
  return routeOf(handlerOfMany(workflows, options));
}

function routeOf(handle: Handler): HonoHandler {
  return ({ env, req }) => {
    // On Node it has the connection there, and no variables.
    const isOfWorker = env && typeof env === 'object' && 'QSTASH_TOKEN' in env;
    return answerWeb(handle, req.raw, isOfWorker ? env : undefined);
  };
}
