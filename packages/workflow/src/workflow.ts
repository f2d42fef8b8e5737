/**
 * What a user writes: a workflow as a function of its context, with options and middlewares. They name one another, and so
 * are in one file.
 */
import type {
  CallResponse,
  CallSettings,
  Duration,
  InvokeStepResponse,
  NotifyStepResponse,
  QStashClientExtraConfig,
  StepFunction,
  WaitEventOptions,
  WaitForWebhookResponse,
  WaitStepResponse,
  Webhook,
  WorkflowClient,
  WorkflowReceiver,
} from './types.ts';

export type RouteFunction<TInitialPayload, TResult = unknown> = (
  context: WorkflowContext<TInitialPayload>,
) => Promise<TResult>;

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

/** A run, and the steps that it may take. */
export abstract class WorkflowContext<TInitialPayload = unknown> {
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

  constructor(facts: RunFacts<TInitialPayload>, signal: AbortSignal) {
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
  }

  get label(): string | undefined {
    return this.labels[0];
  }

  /** Runs `stepFunction` once, and keeps what it returns as JSON. */
  abstract run<TResult>(stepName: string, stepFunction: StepFunction<TResult>): Promise<TResult>;

  /** Goes on after a number of seconds, or a duration. */
  abstract sleep(stepName: string, duration: number | Duration): Promise<void>;

  /** Goes on at a time: a date, its text, or Unix seconds. */
  abstract sleepUntil(stepName: string, datetime: Date | string | number): Promise<void>;

  /** Has the server make an HTTP request, and goes on with its answer, whatever its status. */
  abstract call<TResult = unknown>(stepName: string, settings: CallSettings): Promise<CallResponse<TResult>>;
  abstract call<TResult extends { workflowRunId: string } = { workflowRunId: string }, TBody = unknown>(
    stepName: string,
    settings: LazyInvokeStepParams<TBody, unknown> & Pick<CallSettings, 'timeout'>,
  ): Promise<CallResponse<TResult>>;

  /** Goes on when somebody notifies the event, or after `timeout` (7 days). */
  abstract waitForEvent<TEventData = unknown>(
    stepName: string,
    eventId: string,
    options?: WaitEventOptions,
  ): Promise<WaitStepResponse<TEventData>>;

  /** Notifies all who wait for the event; with `workflowRunId` only that run. */
  abstract notify(
    stepName: string,
    eventId: string,
    eventData: unknown,
    workflowRunId?: string,
  ): Promise<NotifyStepResponse>;

  /** Begins a run of another workflow of the same `serveMany`, and goes on with what it returns. */
  abstract invoke<TPayload, TResult>(
    stepName: string,
    settings: LazyInvokeStepParams<TPayload, TResult>,
  ): Promise<InvokeStepResponse<TResult>>;

  /** Makes a URL that anybody may call to go on with this run. */
  abstract createWebhook(stepName: string): Promise<Webhook>;

  /** Goes on when the webhook is called, or after `timeout`. */
  abstract waitForWebhook(stepName: string, webhook: Webhook, timeout: Duration): Promise<WaitForWebhookResponse>;

  /** Cancels this run. */
  abstract cancel(): Promise<void>;
}

/** What happens in the life of a run. */
export interface LifeCycleEvents<TResult> {
  beforeExecution: { stepName: string };
  afterExecution: { stepName: string; result: unknown };
  runStarted: object;
  runCompleted: { result: TResult };
}

export interface DebugEvents {
  onError: { error: Error };
  onWarning: { warning: string };
  onInfo: { info: string };
}

export type MiddlewareCallbacks<TInitialPayload, TResult> = Partial<
  {
    [K in keyof LifeCycleEvents<TResult>]: (
      params: LifeCycleEvents<TResult>[K] & { context: WorkflowContext<TInitialPayload> },
    ) => Promise<void> | void;
  } & { [K in keyof DebugEvents]: (params: DebugEvents[K] & { workflowRunId?: string }) => Promise<void> | void }
>;

export type MiddlewareParameters<TInitialPayload, TResult> = { name: string } & (
  | {
      init: () =>
        | Promise<MiddlewareCallbacks<TInitialPayload, TResult>>
        | MiddlewareCallbacks<TInitialPayload, TResult>;
    }
  | { callbacks: MiddlewareCallbacks<TInitialPayload, TResult> }
);

/** A middleware is handed on with workflows whatever they are given and return. */
// biome-ignore lint/suspicious/noExplicitAny: as said
type AnyCallbacks = MiddlewareCallbacks<any, any>;

export class WorkflowMiddleware<TInitialPayload = unknown, TResult = unknown> {
  readonly name: string;
  readonly #init: () => Promise<AnyCallbacks>;
  #callbacks: Promise<AnyCallbacks> | undefined;

  constructor(parameters: MiddlewareParameters<TInitialPayload, TResult>) {
    this.name = parameters.name;
    this.#init = async () => ('init' in parameters ? parameters.init() : parameters.callbacks);
  }

  /** Its callbacks. What makes them is called once, and again at the next event when it has thrown. */
  callbacks(): Promise<AnyCallbacks> {
    this.#callbacks ??= this.#init().catch((error: unknown) => {
      this.#callbacks = undefined;
      throw error;
    });
    return this.#callbacks;
  }
}

/** A workflow that others of the same `serveMany` may invoke. */
export interface InvokableWorkflow<TInitialPayload, TResult> {
  routeFunction: RouteFunction<TInitialPayload, TResult>;
  options: WorkflowServeOptions<TInitialPayload, TResult>;
  /** Its name in `serveMany`. */
  workflowId?: string;
  useJSONContent?: boolean;
}

export type LazyInvokeStepParams<TInitialPayload, TResult> = {
  workflow: InvokableWorkflow<TInitialPayload, TResult>;
  workflowRunId?: string;
  label?: string | string[];
} & Pick<CallSettings, 'retries' | 'headers' | 'flowControl' | 'retryDelay'> &
  (TInitialPayload extends undefined ? { body?: undefined } : { body: TInitialPayload });

export type WorkflowContextWithoutMethods<TInitialPayload> = Pick<
  WorkflowContext<TInitialPayload>,
  | 'qstashClient'
  | 'workflowRunId'
  | 'workflowRunCreatedAt'
  | 'url'
  | 'requestPayload'
  | 'headers'
  | 'env'
  | 'label'
  | 'labels'
  | 'retried'
>;

/** What a schema needs: zod's have it, and others. */
interface Schema<T> {
  parse(value: unknown): T;
}

export type ExclusiveValidationOptions<TInitialPayload> =
  | { schema?: Schema<TInitialPayload>; initialPayloadParser?: never }
  | { schema?: never; initialPayloadParser?: (initialPayload: string) => TInitialPayload };

export type WorkflowServeOptions<TInitialPayload = unknown, TResult = unknown> = {
  /** An official client, whose server and token are used; or what is to be set for the one by QSTASH_URL and QSTASH_TOKEN. */
  qstashClient?: WorkflowClient | QStashClientExtraConfig;
  /**
   * Of this endpoint, as the server reaches it. Absent: that of the request. With it, or with the next, a delivery must be
   * signed for this URL, whatever its query.
   */
  url?: string;
  /** Replaces scheme, host and port of the URL. Absent: UPSTASH_WORKFLOW_URL. */
  baseUrl?: string;
  /** Absent: by QSTASH_CURRENT_SIGNING_KEY and QSTASH_NEXT_SIGNING_KEY, if they are set. */
  receiver?: WorkflowReceiver | undefined;
  /** Called once a run has failed for good. The text that it returns is kept. */
  failureFunction?: (failureData: {
    context: WorkflowContextWithoutMethods<TInitialPayload>;
    failStatus: number;
    failResponse: string;
    failHeaders: Record<string, string[]>;
    failStack: string;
  }) => unknown;
  env?: Record<string, string | undefined>;
  /** Taken for the interface's sake: nothing is ever reported. */
  disableTelemetry?: boolean;
  middlewares?: WorkflowMiddleware<TInitialPayload, TResult>[];
  /** Writes to the console what happens. */
  verbose?: boolean;
  /** How long one call may go on, in milliseconds, before it ends and the server calls again. Absent: without end. */
  callBudgetMs?: number;
  /**
   * How long a call stays for a short sleep, a call, a wait or a retry, in milliseconds, so that the run goes on in it: 0 to
   * 10,000. Default: 1,000.
   */
  lingerMs?: number;
} & ExclusiveValidationOptions<TInitialPayload>;
