/** Tells the middlewares of a workflow what happens in a call. */
import { type DebugEvents, type LifeCycleEvents, type WorkflowContext, WorkflowMiddleware } from './workflow.ts';

/** The middlewares of one call. What one of them throws is written to the console, and stops nothing. */
export class Middlewares {
  // biome-ignore lint/suspicious/noExplicitAny: each has the types of its own workflow
  readonly #all: readonly WorkflowMiddleware<any, any>[];
  workflowRunId = '';
  // biome-ignore lint/suspicious/noExplicitAny: as above
  context: WorkflowContext<any> | undefined;

  // biome-ignore lint/suspicious/noExplicitAny: as above
  constructor(all: readonly WorkflowMiddleware<any, any>[]) {
    this.#all = all;
  }

  async life<K extends keyof LifeCycleEvents<unknown>>(event: K, params: LifeCycleEvents<unknown>[K]): Promise<void> {
    if (this.context) await this.#dispatch(event, { ...params, context: this.context });
  }

  debug<K extends keyof DebugEvents>(event: K, params: DebugEvents[K]): Promise<void> {
    return this.#dispatch(event, { ...params, workflowRunId: this.workflowRunId });
  }

  async #dispatch(event: keyof LifeCycleEvents<unknown> | keyof DebugEvents, params: object): Promise<void> {
    for (const middleware of this.#all) {
      try {
        const callback = (await middleware.callbacks())[event] as ((params: object) => unknown) | undefined;
        await callback?.(params);
      } catch (error) {
        console.error(`the middleware '${middleware.name}' has thrown:`, error);
      }
    }
  }
}

/** Writes to the console what happens in a run. */
export const loggingMiddleware: WorkflowMiddleware<unknown, unknown> = new WorkflowMiddleware({
  name: 'logging',
  callbacks: {
    runStarted: ({ context }) => console.log(`${context.workflowRunId} has started`),
    beforeExecution: ({ context, stepName }) => console.log(`${context.workflowRunId} runs '${stepName}'`),
    afterExecution: ({ context, stepName, result }) =>
      console.log(`${context.workflowRunId} has the result of '${stepName}':`, result),
    runCompleted: ({ context, result }) => console.log(`${context.workflowRunId} has returned:`, result),
    onError: ({ workflowRunId, error }) => console.error(`${workflowRunId}:`, error),
    onWarning: ({ workflowRunId, warning }) => console.warn(`${workflowRunId}: ${warning}`),
  },
});
