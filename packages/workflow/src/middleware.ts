/** Notifies the middlewares of a workflow of the events in a call. */
import type { Append, SavedEntry } from './call.ts';
import type { Step } from './types.ts';
import { HEADER } from './wire.ts';
import { type DebugEvents, type LifeCycleEvents, type WorkflowContext, WorkflowMiddleware } from './workflow.ts';

/** The texts of `onInfo`. Apps compare these texts, so the texts match those of the official library. */
export const INFO = {
  received: 'Received request for workflow execution.',
  identified: (isFirst: boolean, isUnknown: boolean) =>
    `Run id identified. isFirstInvocation: ${isFirst}, unknownSdk: ${isUnknown}`,
  started: (url: string) => `Workflow run started successfully with URL ${url}.`,
  submitted: (stepName: string, messageId: string) => `Submitted step "${stepName}" with messageId: ${messageId}.`,
  planned: (messageIds: readonly string[]) =>
    `Submitted ${messageIds.length} parallel steps. messageIds: ${messageIds.join(', ')}.`,
  ending: (workflowRunId: string) => `Deleting workflow run ${workflowRunId} from QStash.`,
  ended: (workflowRunId: string) => `Workflow run ${workflowRunId} deleted from QStash successfully.`,
  executed: 'Workflow endpoint execution completed successfully.',
  failureHandled: 'Handled failure callback.',
  noFailureFunction: 'Failure callback invoked but no failure function defined.',
} as const;

/** The `onInfo` texts for the appended entries that the official library reports. */
export function submissionsOf(append: readonly Append[], entries: readonly SavedEntry[]): string[] {
  const ids = entries.map(({ messageId }) => messageId);
  if (append.length > 1 && append.every((each) => 'step' in each && each.step.stepId === 0)) return [INFO.planned(ids)];
  return append.flatMap((each, index) => {
    const name = nameOf(each);
    return name === undefined ? [] : [INFO.submitted(name, ids[index] ?? '')];
  });
}

/** The step name of an entry; undefined for an entry that the official library does not report. */
function nameOf(append: Append): string | undefined {
  if ('wait' in append) return undefined;
  if ('call' in append)
    return decodeURIComponent(append.call.headers[`Upstash-Callback-Forward-${HEADER.callbackStepNameEncoded}`] ?? '');
  if ('invoke' in append) return (JSON.parse(append.invoke.body ?? '') as { step: Step }).step.stepName;
  const { stepId, stepName, stepType } = append.step;
  const isCallResult = stepType === 'Call' && stepId !== 0;
  return isCallResult ? undefined : stepName;
}

/**
 * The middlewares of one call. An error that a middleware throws is logged to the console and does not affect the run.
 */
export class Middlewares {
  // biome-ignore lint/suspicious/noExplicitAny: each workflow has its own payload and result types
  readonly #all: readonly WorkflowMiddleware<any, any>[];
  workflowRunId: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  context: WorkflowContext<any> | undefined;

  // biome-ignore lint/suspicious/noExplicitAny: as above
  constructor(all: readonly WorkflowMiddleware<any, any>[]) {
    this.#all = all;
  }

  get isEmpty(): boolean {
    return this.#all.length === 0;
  }

  /** Reports that the call continues the run with another message. */
  messageStarted(): Promise<void> {
    return this.info(INFO.identified(false, false));
  }

  info(info: string): Promise<void> {
    return this.debug('onInfo', { info });
  }

  async lifeCycle<K extends keyof LifeCycleEvents<unknown>>(
    event: K,
    params: LifeCycleEvents<unknown>[K],
  ): Promise<void> {
    if (this.context) await this.#dispatch(event, { ...params, context: this.context });
  }

  debug<K extends keyof DebugEvents>(event: K, params: DebugEvents[K]): Promise<void> {
    return this.#dispatch(event, { ...params, ...(this.workflowRunId && { workflowRunId: this.workflowRunId }) });
  }

  async #dispatch(event: keyof LifeCycleEvents<unknown> | keyof DebugEvents, params: object): Promise<void> {
    for (const middleware of this.#all) {
      try {
        const callback = (await middleware.callbacks())[event] as ((params: object) => unknown) | undefined;
        await callback?.(params);
      } catch (error) {
        console.error(`the middleware '${middleware.name}' threw:`, error);
      }
    }
  }
}

/** Logs the events of a run to the console. */
export const loggingMiddleware: WorkflowMiddleware<unknown, unknown> = new WorkflowMiddleware({
  name: 'logging',
  callbacks: {
    runStarted: ({ context }) => console.log(`${context.workflowRunId} started`),
    beforeExecution: ({ context, stepName }) => console.log(`${context.workflowRunId} runs '${stepName}'`),
    afterExecution: ({ context, stepName, result }) =>
      console.log(`${context.workflowRunId} got the result of '${stepName}':`, result),
    runCompleted: ({ context, result }) => console.log(`${context.workflowRunId} returned:`, result),
    onError: ({ workflowRunId, error }) => console.error(`${workflowRunId}:`, error),
    onWarning: ({ workflowRunId, warning }) => console.warn(`${workflowRunId}: ${warning}`),
  },
});
