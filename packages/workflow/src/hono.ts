/** Serves workflows in Hono, on every runtime that Hono supports: `app.post('/workflow', serve(...))`. */
import { type Handler, respondWeb } from './http.ts';
import { handlerOf } from './serve.ts';
import { createWorkflow, handlerOfMany, type ServeManyOptions, type Workflows } from './serve-many.ts';
import type { RouteFunction, WorkflowServeOptions } from './workflow.ts';

export { createWorkflow };

/** The environment variables of a Cloudflare Worker. */
export interface WorkflowBindings {
  QSTASH_TOKEN: string;
  QSTASH_URL?: string;
  QSTASH_CURRENT_SIGNING_KEY?: string;
  QSTASH_NEXT_SIGNING_KEY?: string;
  UPSTASH_WORKFLOW_URL?: string;
}

/** The members of a Hono `Context` that are used. */
export interface HonoContext {
  // biome-ignore lint/suspicious/noExplicitAny: apps declare the type of their bindings
  env: any;
  req: { raw: Request; url: string };
}

export type HonoHandler = (context: HonoContext) => Promise<Response>;

/** Serves one workflow, at any path. */
export function serve<TInitialPayload = unknown, TResult = unknown>(
  routeFunction: RouteFunction<TInitialPayload, TResult>,
  options?: WorkflowServeOptions<TInitialPayload, TResult>,
): HonoHandler {
  return routeOf(handlerOf(routeFunction, options));
}

/** Serves several workflows, each by its name as the last segment of the path. */
export function serveMany(workflows: Workflows, options?: ServeManyOptions): HonoHandler {
  return routeOf(handlerOfMany(workflows, options));
}

function routeOf(handle: Handler): HonoHandler {
  return ({ env, req }) => {
    // On Node, `env` holds the connection instead of variables.
    const hasVariables = env && typeof env === 'object' && 'QSTASH_TOKEN' in env;
    return respondWeb(handle, req.raw, hasVariables ? env : undefined);
  };
}
