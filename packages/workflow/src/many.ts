/** Workflows that are served below one URL, each by its name: these can invoke one another. */
import { notFound } from './answers.ts';
import { WorkflowError } from './errors.ts';
import type { Handler } from './http.ts';
import { handlerOf } from './serve.ts';
import type { InvokableWorkflow, RouteFunction, WorkflowServeOptions } from './workflow.ts';

/** Options that hold for each workflow of `serveMany`. */
export type ServeManyOptions = Omit<WorkflowServeOptions, 'env' | 'url' | 'schema' | 'initialPayloadParser'>;

// biome-ignore lint/suspicious/noExplicitAny: each workflow has a payload and a result of its own
export type Workflows = Record<string, InvokableWorkflow<any, any>>;

/** A workflow that `serveMany` can serve and others can invoke. */
export function createWorkflow<TInitialPayload = unknown, TResult = unknown>(
  routeFunction: RouteFunction<TInitialPayload, TResult>,
  options: WorkflowServeOptions<TInitialPayload, TResult> = {},
): InvokableWorkflow<TInitialPayload, TResult> {
  return { routeFunction, options };
}

/** Answers for each workflow at the URLs whose last segment is its name. Throws `WorkflowError` when a name cannot be one. */
export function handlerOfMany(
  workflows: Workflows,
  options?: ServeManyOptions,
  { useJSONContent }: { useJSONContent?: boolean } = {},
): Handler {
  const handlers = new Map<string, Handler>();
  for (const [name, workflow] of Object.entries(workflows)) {
    if (name.includes('/')) throw new WorkflowError(`A workflow's name has no '/', and this one is '${name}'.`);
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
