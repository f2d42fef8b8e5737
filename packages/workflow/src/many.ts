/** Workflows that are served below one URL, each by its name: these can invoke one another. */
import { OF_LIBRARY } from './answers.ts';
import { WorkflowError } from './errors.ts';
import type { InvokableWorkflow, RouteFunction, WorkflowServeOptions } from './types.ts';

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

/**
 * Finds for a URL what serves the workflow that its last segment names; answers 404 where there is none. Throws
 * `WorkflowError` when a name cannot be one.
 */
export function routesOf<Handler>(
  workflows: Workflows,
  options: ServeManyOptions | undefined,
  handlerOf: (workflow: Workflows[string]) => Handler,
): (url: string) => Handler | Response {
  const handlers = new Map<string, Handler>();
  for (const [name, workflow] of Object.entries(workflows)) {
    if (name.includes('/')) throw new WorkflowError(`A workflow's name has no '/', and this one is '${name}'.`);
    workflow.workflowId = name;
    workflow.options = { ...options, ...workflow.options };
    handlers.set(name, handlerOf(workflow));
  }
  return (url) => {
    const name = url.split('?')[0]?.split('/').at(-1) ?? '';
    return (
      handlers.get(name) ?? new Response(`There is no workflow '${name}' here.`, { status: 404, headers: OF_LIBRARY })
    );
  };
}
