/** Serves workflows in Next.js: route handlers of the app router, and API routes of the pages router. */
import { respondWeb } from './http.ts';
import { type NodeRequest, type NodeResponse, serveMany as serveManyNode, serve as serveNode } from './node.ts';
import { serve as serveWeb } from './serve.ts';
import { createWorkflow, handlerOfMany, type ServeManyOptions, type Workflows } from './serve-many.ts';
import type { RouteFunction, WorkflowServeOptions } from './workflow.ts';

export { createWorkflow, createWorkflow as createWorkflowPagesRouter };

type Post = (request: Request) => Promise<Response>;

/** For `app/.../route.ts`: `export const { POST } = serve(...)`. */
export function serve<TInitialPayload = unknown, TResult = unknown>(
  routeFunction: RouteFunction<TInitialPayload, TResult>,
  options?: WorkflowServeOptions<TInitialPayload, TResult>,
): { POST: Post } {
  return { POST: serveWeb(routeFunction, options).handler };
}

/** For `app/.../[...any]/route.ts`. */
export function serveMany(workflows: Workflows, options?: ServeManyOptions): { POST: Post } {
  const handle = handlerOfMany(workflows, options);
  return { POST: (request) => respondWeb(handle, request) };
}

/** For `pages/api/...`: `export default servePagesRouter(...).handler`. */
export function servePagesRouter<TInitialPayload = unknown, TResult = unknown>(
  routeFunction: RouteFunction<TInitialPayload, TResult>,
  options?: WorkflowServeOptions<TInitialPayload, TResult>,
): { handler: (request: NodeRequest, response: NodeResponse) => Promise<void> } {
  return { handler: serveNode(routeFunction, options) };
}

/** For `pages/api/.../[...any].ts`. */
export function serveManyPagesRouter(
  workflows: Workflows,
  options?: ServeManyOptions,
): { handler: (request: NodeRequest, response: NodeResponse) => Promise<void> } {
  return { handler: serveManyNode(workflows, options) };
}
