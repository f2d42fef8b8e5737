/**
 * The types that users write workflows with: a function of the context, its options and middlewares. The types are in one
 * file because they refer to one another.
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

/** A run, as the workflow sees it during one call. */
export interface RunFacts<TInitialPayload> {
  workflowRunId: string;
  /** Unix time in milliseconds. */
  workflowRunCreatedAt: number;
  url: string;
  requestPayload: TInitialPayload;
  headers: Headers;
  env: Record<string, string | undefined>;
  labels: string[];
  /** How often the delivery of this call was retried. */
  retried: number;
  /** The depth of the chain of invocations that led to this run. */
  invokeCount: number;
  qstashClient: WorkflowClient;
}

/** A run, and the steps that its workflow can take. */
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
  /** Aborts when this call has lost its run to another call, or the run was cancelled. */
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

  /** Runs `stepFunction` and saves its return value as JSON. Later calls read the saved value. */
  abstract run<TResult>(stepName: string, stepFunction: StepFunction<TResult>): Promise<TResult>;

  /** Sleeps for a number of seconds, or a duration. */
  abstract sleep(stepName: string, duration: number | Duration): Promise<void>;

  /** Sleeps until a time: a date, a date as text, or Unix seconds. */
  abstract sleepUntil(stepName: string, datetime: Date | string | number): Promise<void>;

  /** Has the server send an HTTP request and returns the response, whatever its status. */
  abstract call<TResult = unknown>(stepName: string, settings: CallSettings): Promise<CallResponse<TResult>>;
  abstract call<TResult extends { workflowRunId: string } = { workflowRunId: string }, TBody = unknown>(
    stepName: string,
    settings: LazyInvokeStepParams<TBody, unknown> & Pick<CallSettings, 'timeout'>,
  ): Promise<CallResponse<TResult>>;

  /** Waits until the event is notified, or until `timeout` (7 days by default). */
  abstract waitForEvent<TEventData = unknown>(
    stepName: string,
    eventId: string,
    options?: WaitEventOptions,
  ): Promise<WaitStepResponse<TEventData>>;

  /** Notifies all waiters of the event; with `workflowRunId` only that run. */
  abstract notify(
    stepName: string,
    eventId: string,
    eventData: unknown,
    workflowRunId?: string,
  ): Promise<NotifyStepResponse>;

  /** Starts a run of another workflow of the same `serveMany` and returns its result. */
  abstract invoke<TPayload, TResult>(
    stepName: string,
    settings: LazyInvokeStepParams<TPayload, TResult>,
  ): Promise<InvokeStepResponse<TResult>>;

  /** Creates a URL that anybody may call to resume this run. */
  abstract createWebhook(stepName: string): Promise<Webhook>;

  /** Waits until the webhook is called, or until `timeout`. */
  abstract waitForWebhook(stepName: string, webhook: Webhook, timeout: Duration): Promise<WaitForWebhookResponse>;

  /** Cancels this run. */
  abstract cancel(): Promise<void>;
}

/** Events in the life of a run. */
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

/** One middleware can serve workflows with any payload and result types. */
// biome-ignore lint/suspicious/noExplicitAny: see above
type AnyCallbacks = MiddlewareCallbacks<any, any>;

export class WorkflowMiddleware<TInitialPayload = unknown, TResult = unknown> {
  readonly name: string;
  readonly #init: () => Promise<AnyCallbacks>;
  #callbacks: Promise<AnyCallbacks> | undefined;

  constructor(parameters: MiddlewareParameters<TInitialPayload, TResult>) {
    this.name = parameters.name;
    this.#init = async () => ('init' in parameters ? parameters.init() : parameters.callbacks);
  }

  /** The callbacks. `init` is called once, and again at the next event if it threw. */
  callbacks(): Promise<AnyCallbacks> {
    this.#callbacks ??= this.#init().catch((error: unknown) => {
      this.#callbacks = undefined;
      throw error;
    });
    return this.#callbacks;
  }
}

/** A workflow that other workflows of the same `serveMany` can invoke. */
export interface InvokableWorkflow<TInitialPayload, TResult> {
  routeFunction: RouteFunction<TInitialPayload, TResult>;
  options: WorkflowServeOptions<TInitialPayload, TResult>;
  /** The name of the workflow in `serveMany`. */
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

/** A validation schema, such as zod's. */
interface Schema<T> {
  parse(value: unknown): T;
}

export type ExclusiveValidationOptions<TInitialPayload> =
  | { schema?: Schema<TInitialPayload>; initialPayloadParser?: never }
  | { schema?: never; initialPayloadParser?: (initialPayload: string) => TInitialPayload };

export type WorkflowServeOptions<TInitialPayload = unknown, TResult = unknown> = {
  /** An official client, whose server and token are used; or options for the server that QSTASH_URL and QSTASH_TOKEN name. */
  qstashClient?: WorkflowClient | QStashClientExtraConfig;
  /**
   * The URL at which the server reaches this endpoint. Default: the URL of the request. If this or `baseUrl` is set, deliveries
   * must be signed for this URL; the query is ignored.
   */
  url?: string;
  /** Replaces scheme, host and port of the URL. Default: UPSTASH_WORKFLOW_URL. */
  baseUrl?: string;
  /** Default: a receiver with QSTASH_CURRENT_SIGNING_KEY and QSTASH_NEXT_SIGNING_KEY, if both are set. */
  receiver?: WorkflowReceiver | undefined;
  /** Called when the run has failed. If it returns text, that text is saved. */
  failureFunction?: (failureData: {
    context: WorkflowContextWithoutMethods<TInitialPayload>;
    failStatus: number;
    failResponse: string;
    failHeaders: Record<string, string[]>;
    failStack: string;
  }) => unknown;
  env?: Record<string, string | undefined>;
  /** Accepted for compatibility: nothing is ever reported. */
  disableTelemetry?: boolean;
  middlewares?: WorkflowMiddleware<TInitialPayload, TResult>[];
  /** Logs events to the console. */
  verbose?: boolean;
  /**
   * Maximum duration of one call in milliseconds. Then the call ends and the server calls the endpoint again. Default: no
   * limit.
   */
  callBudgetMs?: number;
  /**
   * How long a call stays open for the result of a short sleep, a call, a wait or a retry, in milliseconds: 0 to 10,000. The
   * run then continues in the same call. Default: 1,000.
   */
  lingerMs?: number;
} & ExclusiveValidationOptions<TInitialPayload>;
