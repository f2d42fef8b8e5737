/** Serves several workflows below one URL, each by its name, so that they can invoke one another. */
import { WorkflowError } from './errors.ts';
import type { Handler } from './http.ts';
import { notFound } from './responses.ts';
import { handlerOf } from './serve.ts';
import type { InvokableWorkflow, RouteFunction, WorkflowServeOptions } from './workflow.ts';

/** Options that apply to every workflow of `serveMany`. */
export type ServeManyOptions = Omit<WorkflowServeOptions, 'env' | 'url' | 'schema' | 'initialPayloadParser'>;

// biome-ignore lint/suspicious/noExplicitAny: each workflow has its own payload and result types
export type Workflows = Record<string, InvokableWorkflow<any, any>>;

/** Creates a workflow that `serveMany` can serve and other workflows can invoke. */
export function createWorkflow<TInitialPayload = unknown, TResult = unknown>(
  routeFunction: RouteFunction<TInitialPayload, TResult>,
  options: WorkflowServeOptions<TInitialPayload, TResult> = {},
): InvokableWorkflow<TInitialPayload, TResult> {
  return { routeFunction, options };
}

/** Handles requests to all workflows by the last segment of the URL. Throws `WorkflowError` for an invalid name. */
export function handlerOfMany(
  workflows: Workflows,
  options?: ServeManyOptions,
  { useJSONContent }: { useJSONContent?: boolean } = {},
): Handler {
  const handlers = new Map<string, Handler>();
  for (const [name, workflow] of Object.entries(workflows)) {
    if (name.includes('/')) throw new WorkflowError(`A workflow name must not contain '/': '${name}'.`);
    workflow.workflowId = name;
    workflow.options = { ...options, ...workflow.options };
    if (useJSONContent) workflow.useJSONContent = true;
    handlers.set(name, handlerOf(workflow.routeFunction, workflow.options, { useJSONContent }));
  }
  return async (incoming) => {
    const name = incoming.url.split('?')[0]?.split('/').at(-1) ?? '';
    return handlers.get(name)?.(incoming) ?? notFound(name);
  };
}
