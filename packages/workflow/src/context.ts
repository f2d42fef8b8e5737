/** The context of one call: turns the requests of the workflow into steps. */
import { decodeBase64 } from './base64.ts';
import { durationOf } from './durations.ts';
import { WorkflowAbort, WorkflowCancelAbort, WorkflowError } from './errors.ts';
import type { Execution } from './execution.ts';
import { callHeaders, startHeaders, stepHeaders } from './headers.ts';
import { eventId, runIdOf } from './ids.ts';
import { bodyMember, type Server } from './server.ts';
import {
  callStep,
  invokeStep,
  type LazyStep,
  notifyStep,
  runStep,
  sleepStep,
  waitForWebhookStep,
  waitStep,
  webhookStep,
} from './steps.ts';
import type {
  CallResponse,
  CallSettings,
  Duration,
  InvokeStepResponse,
  NotifyStepResponse,
  StepFunction,
  WaitEventOptions,
  WaitForWebhookResponse,
  WaitStepResponse,
  Webhook,
} from './types.ts';
import { HEADER } from './wire.ts';
import { type LazyInvokeStepParams, type RunFacts, WorkflowContext } from './workflow.ts';

/** The settings of a `call` to another workflow, instead of to a URL. */
type WorkflowCallSettings = Omit<CallSettings, 'url' | 'method' | 'body'> & { workflow: { workflowId?: string } };

/** The settings of an invocation, with a payload of any type. */
type InvokeSettings = LazyInvokeStepParams<unknown, unknown> & { body?: unknown };

/** Thrown at the first step when the workflow runs only to check whether it reaches a step. */
export class StepFound extends WorkflowAbort {
  override name = 'StepFound';
}

export class CallContext<TInitialPayload = unknown> extends WorkflowContext<TInitialPayload> {
  /** Apps read `invokeCount` here, although the official context declares this member private. */
  protected readonly executor: { readonly invokeCount: number };
  readonly #server: Server;
  readonly #execution: Execution | undefined;

  /** Without `execution`, the context runs no steps: the first step throws `StepFound`. */
  constructor(
    facts: RunFacts<TInitialPayload>,
    server: Server,
    execution?: Execution,
    signal: AbortSignal = new AbortController().signal,
  ) {
    super(facts, signal);
    this.executor = { invokeCount: facts.invokeCount };
    this.#server = server;
    this.#execution = execution;
  }

  run<TResult>(stepName: string, stepFunction: StepFunction<TResult>): Promise<TResult> {
    return this.#add(runStep<TResult>(stepName, stepFunction));
  }

  sleep(stepName: string, duration: number | Duration): Promise<void> {
    return this.#add(sleepStep(stepName, 'SleepFor', { sleepFor: duration }));
  }

  sleepUntil(stepName: string, datetime: Date | string | number): Promise<void> {
    const sleepUntil = typeof datetime === 'number' ? datetime : new Date(datetime).getTime() / 1000;
    if (!Number.isFinite(sleepUntil))
      throw new WorkflowError(`'${stepName}' cannot sleep until ${String(datetime)}: it is not a valid time.`);
    return this.#add(sleepStep(stepName, 'SleepUntil', { sleepUntil }));
  }

  call<TResult = unknown>(stepName: string, settings: CallSettings): Promise<CallResponse<TResult>>;
  call<TResult extends { workflowRunId: string } = { workflowRunId: string }, TBody = unknown>(
    stepName: string,
    settings: LazyInvokeStepParams<TBody, unknown> & Pick<CallSettings, 'timeout'>,
  ): Promise<CallResponse<TResult>>;
  call<TResult = unknown>(
    stepName: string,
    settings: CallSettings | (WorkflowCallSettings & { body?: unknown }),
  ): Promise<CallResponse<TResult>> {
    const isWorkflowCall = 'workflow' in settings;
    const destination = isWorkflowCall ? this.#urlOf(settings.workflow) : settings.url;
    const method = isWorkflowCall ? 'POST' : (settings.method ?? 'GET');
    const { headers, retries, retryDelay, timeout, flowControl } = settings;
    const rest = { method, headers, retries, retryDelay, timeout, flowControl };
    const { workflowRunId } = this;
    return this.#add(
      callStep<TResult>(stepName, (step) => ({
        destination,
        headers: this.#server.headersWith(
          callHeaders({ workflowRunId, url: this.url, invokeCount: this.executor.invokeCount }, step, rest),
        ),
        ...bodyMember(settings.body),
      })),
    );
  }

  waitForEvent<TEventData = unknown>(
    stepName: string,
    eventId: string,
    { timeout = '7d' }: WaitEventOptions = {},
  ): Promise<WaitStepResponse<TEventData>> {
    return this.#add(waitStep<TEventData>(stepName, eventId, durationOf(timeout)));
  }

  notify(stepName: string, eventId: string, eventData: unknown, workflowRunId?: string): Promise<NotifyStepResponse> {
    return this.#add(
      notifyStep(stepName, async () => ({
        eventId,
        eventData,
        notifyResponse: await this.#server.notify({ eventId, eventData, workflowRunId }),
      })),
    );
  }

  invoke<TPayload, TResult>(
    stepName: string,
    settings: LazyInvokeStepParams<TPayload, TResult>,
  ): Promise<InvokeStepResponse<TResult>> {
    const { workflow, headers, workflowRunId, body, retries, retryDelay, flowControl, label } =
      settings as InvokeSettings;
    const url = this.#urlOf(workflow);
    return this.#add(
      invokeStep<TResult>(stepName, (step) => ({
        destination: url,
        headers: this.#server.headersWith({
          ...startHeaders({
            ...{ retries, retryDelay, flowControl, label },
            runId: runIdOf(workflowRunId),
            url,
            failureUrl: url,
            userHeaders: new Headers(headers),
            invokeCount: this.executor.invokeCount + 1,
            ...(workflow.useJSONContent && { contentType: 'application/json' }),
          }),
          [HEADER.invoke]: 'true',
        }),
        body: JSON.stringify({
          ...bodyMember(body),
          headers: asLists(
            this.#server.headersWith(stepHeaders(this.workflowRunId, this.url, this.executor.invokeCount)),
          ),
          workflowRunId: this.workflowRunId,
          workflowRunCreatedAt: this.workflowRunCreatedAt,
          workflowUrl: this.url,
          step,
        }),
      })),
    );
  }

  createWebhook(stepName: string): Promise<Webhook> {
    return this.#add(
      webhookStep(stepName, () => {
        const id = eventId();
        const { baseUrl, token } = this.#server;
        const path = `/v2/workflows/hooks/${userIdOf(token)}/${encodeURIComponent(this.workflowRunId)}/${id}`;
        return { webhookUrl: `${baseUrl}${path}`, eventId: id };
      }),
    );
  }

  waitForWebhook(stepName: string, webhook: Webhook, timeout: Duration): Promise<WaitForWebhookResponse> {
    return this.#add(waitForWebhookStep(stepName, webhook.eventId, timeout));
  }

  async cancel(): Promise<void> {
    throw this.#execution ? new WorkflowCancelAbort() : new StepFound('cancel');
  }

  async #add<T>(step: LazyStep<T>): Promise<T> {
    if (typeof step.name !== 'string' || step.name === '')
      throw new WorkflowError(`A step needs a name: a non-empty string. This one has ${JSON.stringify(step.name)}.`);
    if (!this.#execution) throw new StepFound(step.name);
    return this.#execution.add(step);
  }

  #urlOf({ workflowId }: { workflowId?: string }): string {
    if (workflowId) return this.url.replace(/[^/]+$/, workflowId);
    throw new WorkflowError('Only a workflow that is named by serveMany can be invoked.');
  }
}

/** Returns the headers in their JSON form: a list of values for each name. */
function asLists(headers: Record<string, string>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
}

/** The user id in the token, which is part of the URL of a webhook. */
function userIdOf(token: string): string {
  try {
    const { UserID } = JSON.parse(decodeBase64(token)) as { UserID?: string };
    if (UserID) return UserID;
  } catch {
    // The token has no user id.
  }
  throw new WorkflowError('The token contains no user id, so no webhook URL can be made with it.');
}
