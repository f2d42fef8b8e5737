/** What a workflow is given: its payload, and the steps it may take. */
import { decodeBase64 } from './base64.ts';
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
  LazyInvokeStepParams,
  NotifyStepResponse,
  StepFunction,
  WaitEventOptions,
  WaitForWebhookResponse,
  WaitStepResponse,
  Webhook,
  WorkflowClient,
} from './types.ts';
import { HEADER } from './wire.ts';

/** A run, as the workflow sees it in one call. */
export interface RunFacts<TInitialPayload> {
  workflowRunId: string;
  /** Unix time in milliseconds. */
  workflowRunCreatedAt: number;
  url: string;
  requestPayload: TInitialPayload;
  headers: Headers;
  env: Record<string, string | undefined>;
  labels: string[];
  /** Retries of the delivery that this call is. */
  retried: number;
  /** How many runs have invoked one another to get here. */
  invokeCount: number;
  qstashClient: WorkflowClient;
}

/** What `call` takes of another workflow in place of a URL. */
type CallOfWorkflow = Omit<CallSettings, 'url' | 'method' | 'body'> & { workflow: { workflowId?: string } };

/** What an invocation is asked with, whatever the payload's type. */
type InvokeOf = LazyInvokeStepParams<unknown, unknown> & { body?: unknown };

/** Thrown at the first step when the workflow is only asked whether it would get there. */
export class StepFound extends WorkflowAbort {
  override name = 'StepFound';
}

export class WorkflowContext<TInitialPayload = unknown> {
  readonly qstashClient: WorkflowClient;
  readonly workflowRunId: string;
  readonly workflowRunCreatedAt: number;
  readonly url: string;
  readonly requestPayload: TInitialPayload;
  readonly headers: Headers;
  readonly env: Record<string, string | undefined>;
  readonly labels: string[];
  readonly retried: number;
  /** Aborts when the server has given up this call, or the run was cancelled. */
  readonly signal: AbortSignal;
  readonly #invokeCount: number;
  readonly #server: Server;
  readonly #execution: Execution | undefined;

  /** Without `execution` it has no steps: the first one throws `StepFound`. */
  constructor(
    facts: RunFacts<TInitialPayload>,
    server: Server,
    execution?: Execution,
    signal: AbortSignal = new AbortController().signal,
  ) {
    this.qstashClient = facts.qstashClient;
    this.workflowRunId = facts.workflowRunId;
    this.workflowRunCreatedAt = facts.workflowRunCreatedAt;
    this.url = facts.url;
    this.requestPayload = facts.requestPayload;
    this.headers = facts.headers;
    this.env = facts.env;
    this.labels = facts.labels;
    this.retried = facts.retried;
    this.signal = signal;
    this.#invokeCount = facts.invokeCount;
    this.#server = server;
    this.#execution = execution;
  }

  get label(): string | undefined {
    return this.labels[0];
  }

  /** Runs `stepFunction` once, and keeps what it returns as JSON. */
  run<TResult>(stepName: string, stepFunction: StepFunction<TResult>): Promise<TResult> {
    return this.#add(runStep<TResult>(stepName, stepFunction));
  }

  /** Goes on after a number of seconds, or a duration. */
  sleep(stepName: string, duration: number | Duration): Promise<void> {
    return this.#add(sleepStep(stepName, 'SleepFor', { sleepFor: duration }));
  }

  /** Goes on at a time: a date, its text, or Unix seconds. */
  sleepUntil(stepName: string, datetime: Date | string | number): Promise<void> {
    const sleepUntil = typeof datetime === 'number' ? datetime : Math.round(new Date(datetime).getTime() / 1000);
    return this.#add(sleepStep(stepName, 'SleepUntil', { sleepUntil }));
  }

  /** Has the server make an HTTP request, and goes on with its answer, whatever its status. */
  call<TResult = unknown>(stepName: string, settings: CallSettings): Promise<CallResponse<TResult>>;
  call<TResult extends { workflowRunId: string } = { workflowRunId: string }, TBody = unknown>(
    stepName: string,
    settings: LazyInvokeStepParams<TBody, unknown> & Pick<CallSettings, 'timeout'>,
  ): Promise<CallResponse<TResult>>;
  call<TResult = unknown>(
    stepName: string,
    settings: CallSettings | (CallOfWorkflow & { body?: unknown }),
  ): Promise<CallResponse<TResult>> {
    const isOfWorkflow = 'workflow' in settings;
    const destination = isOfWorkflow ? this.#urlOf(settings.workflow) : settings.url;
    const method = isOfWorkflow ? 'POST' : (settings.method ?? 'GET');
    const { headers, retries, retryDelay, timeout, flowControl } = settings;
    const rest = { method, headers, retries, retryDelay, timeout, flowControl };
    const { workflowRunId } = this;
    return this.#add(
      callStep<TResult>(stepName, (step) => ({
        destination,
        headers: callHeaders({ workflowRunId, url: this.url, invokeCount: this.#invokeCount }, step, rest),
        ...bodyMember(settings.body),
      })),
    );
  }

  /** Goes on when somebody notifies the event, or after `timeout` (7 days). */
  waitForEvent<TEventData = unknown>(
    stepName: string,
    eventId: string,
    { timeout = '7d' }: WaitEventOptions = {},
  ): Promise<WaitStepResponse<TEventData>> {
    return this.#add(waitStep<TEventData>(stepName, eventId, typeof timeout === 'number' ? `${timeout}s` : timeout));
  }

  /** Notifies all who wait for the event; with `workflowRunId` only that run. */
  notify(stepName: string, eventId: string, eventData: unknown, workflowRunId?: string): Promise<NotifyStepResponse> {
    return this.#add(
      notifyStep(stepName, async () => ({
        eventId,
        eventData,
        notifyResponse: await this.#server.notify({ eventId, eventData, workflowRunId }),
      })),
    );
  }

  /** Begins a run of another workflow of the same `serveMany`, and goes on with what it returns. */
  invoke<TPayload, TResult>(
    stepName: string,
    settings: LazyInvokeStepParams<TPayload, TResult>,
  ): Promise<InvokeStepResponse<TResult>> {
    const { workflow, headers, workflowRunId, body, retries, retryDelay, flowControl, label } = settings as InvokeOf;
    const url = this.#urlOf(workflow);
    return this.#add(
      invokeStep<TResult>(stepName, (step) => ({
        destination: url,
        headers: {
          ...startHeaders({
            ...{ retries, retryDelay, flowControl, label },
            runId: runIdOf(workflowRunId),
            url,
            failureUrl: url,
            userHeaders: new Headers(headers),
            invokeCount: this.#invokeCount + 1,
            ...(workflow.useJSONContent && { contentType: 'application/json' }),
          }),
          [HEADER.invoke]: 'true',
        },
        body: JSON.stringify({
          ...bodyMember(body),
          headers: listed(stepHeaders(this.workflowRunId, this.url)),
          workflowRunId: this.workflowRunId,
          workflowRunCreatedAt: this.workflowRunCreatedAt,
          workflowUrl: this.url,
          step,
        }),
      })),
    );
  }

  /** Makes a URL that anybody may call to go on with this run. */
  createWebhook(stepName: string): Promise<Webhook> {
    return this.#add(
      webhookStep(stepName, () => {
        const id = eventId();
        const { baseUrl, token } = this.#server;
        const path = `/v2/workflows/hooks/${userOf(token)}/${this.workflowRunId}/${id}`;
        return { webhookUrl: `${baseUrl}${path}`, eventId: id };
      }),
    );
  }

  /** Goes on when the webhook is called, or after `timeout`. */
  waitForWebhook(stepName: string, webhook: Webhook, timeout: Duration): Promise<WaitForWebhookResponse> {
    return this.#add(waitForWebhookStep(stepName, webhook.eventId, timeout));
  }

  /** Cancels this run. */
  async cancel(): Promise<void> {
    throw this.#execution ? new WorkflowCancelAbort() : new StepFound('cancel');
  }

  async #add<T>(step: LazyStep<T>): Promise<T> {
    if (typeof step.name !== 'string' || step.name === '')
      throw new WorkflowError(
        `A step needs a name: text that is not empty. This one has ${JSON.stringify(step.name)}.`,
      );
    if (!this.#execution) throw new StepFound(step.name);
    return this.#execution.add(step);
  }

  #urlOf({ workflowId }: { workflowId?: string }): string {
    if (workflowId) return this.url.replace(/[^/]+$/, workflowId);
    throw new WorkflowError('Only a workflow that serveMany has given a name can be invoked.');
  }
}

/** As header maps in JSON: each value in a list. */
function listed(headers: Record<string, string>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
}

/** Whose token it is: part of the URL of a webhook. */
function userOf(token: string): string {
  try {
    const { UserID } = JSON.parse(decodeBase64(token)) as { UserID?: string };
    if (UserID) return UserID;
  } catch {
    // Told below.
  }
  throw new WorkflowError('The token does not say whose it is, so that no URL of a webhook can be made with it.');
}
