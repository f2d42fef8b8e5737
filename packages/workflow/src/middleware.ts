/** What users hang into the life of a run: the same events as in `@upstash/workflow`. */
import type { WorkflowContext } from './context.ts';

interface LifeCycle<TResult> {
  beforeExecution: { stepName: string };
  afterExecution: { stepName: string; result: unknown };
  runStarted: object;
  runCompleted: { result: TResult };
}

interface Debug {
  onError: { error: Error };
  onWarning: { warning: string };
  onInfo: { info: string };
}

export type MiddlewareCallbacks<TInitialPayload, TResult> = Partial<
  {
    [K in keyof LifeCycle<TResult>]: (
      params: LifeCycle<TResult>[K] & { context: WorkflowContext<TInitialPayload> },
    ) => Promise<void> | void;
  } & { [K in keyof Debug]: (params: Debug[K] & { workflowRunId?: string }) => Promise<void> | void }
>;

export type MiddlewareParameters<TInitialPayload, TResult> = { name: string } & (
  | {
      init: () =>
        | Promise<MiddlewareCallbacks<TInitialPayload, TResult>>
        | MiddlewareCallbacks<TInitialPayload, TResult>;
    }
  | { callbacks: MiddlewareCallbacks<TInitialPayload, TResult> }
);

export class WorkflowMiddleware<TInitialPayload = unknown, TResult = unknown> {
  readonly name: string;
  readonly #init: () => Promise<MiddlewareCallbacks<TInitialPayload, TResult>>;
  #callbacks: Promise<MiddlewareCallbacks<TInitialPayload, TResult>> | undefined;

  constructor(parameters: MiddlewareParameters<TInitialPayload, TResult>) {
    this.name = parameters.name;
    this.#init = async () => ('init' in parameters ? parameters.init() : parameters.callbacks);
  }

  /** Its callbacks; what makes them is called once. */
  callbacks(): Promise<MiddlewareCallbacks<TInitialPayload, TResult>> {
    this.#callbacks ??= this.#init();
    return this.#callbacks;
  }
}

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

  async life<K extends keyof LifeCycle<unknown>>(event: K, params: LifeCycle<unknown>[K]): Promise<void> {
    if (this.context) await this.#dispatch(event, { ...params, context: this.context });
  }

  debug<K extends keyof Debug>(event: K, params: Debug[K]): Promise<void> {
    return this.#dispatch(event, { ...params, workflowRunId: this.workflowRunId });
  }

  async #dispatch(event: keyof LifeCycle<unknown> | keyof Debug, params: object): Promise<void> {
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
