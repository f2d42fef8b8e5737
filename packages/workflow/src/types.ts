/** The types of the interface: those of `@upstash/workflow` 1.x, under the same names. */
import type { WorkflowContext } from './context.ts';
import type { WorkflowMiddleware } from './middleware.ts';

export const StepTypes = [
  'Initial',
  'Run',
  'SleepFor',
  'SleepUntil',
  'Call',
  'Wait',
  'Notify',
  'Invoke',
  'CreateWebhook',
  'WaitForWebhook',
] as const;

export type StepType = (typeof StepTypes)[number];

/** `10s`, `5m`, `2h`, `7d`. */
export type Duration = `${bigint}${'s' | 'm' | 'h' | 'd'}`;

export type HTTPMethods = 'GET' | 'POST' | 'PUT' | 'DELETE' | 'PATCH';

/** A step as the journal keeps it: a result, or the plan of a step in a group (`stepId` 0, with `targetStep`). */
export interface Step<TResult = unknown> {
  stepId: number;
  stepName: string;
  stepType: StepType;
  out?: TResult;
  sleepFor?: number | Duration;
  /** Unix time in seconds. */
  sleepUntil?: number;
  concurrent: number;
  targetStep?: number;
  waitEventId?: string;
  waitTimeout?: boolean;
  timeout?: string;
}

/** An entry of the journal as a delivery brings it; `body` is base64. */
export interface RawStep {
  messageId: string;
  body: string;
  callType: 'step' | 'toCallback' | 'fromCallback';
}

/** A limit that messages share: how many at a time, and how many in a period. */
export type FlowControl = {
  key: string;
  parallelism?: number;
  rate?: number;
  /** @deprecated use `rate`. */
  ratePerSecond?: number;
  period?: Duration | number;
} & ({ parallelism: number } | { rate: number } | { ratePerSecond: number });

export type SyncStepFunction<TResult> = () => TResult;
export type AsyncStepFunction<TResult> = () => Promise<TResult>;
export type StepFunction<TResult> = AsyncStepFunction<TResult> | SyncStepFunction<TResult>;

export type RouteFunction<TInitialPayload, TResult = unknown> = (
  context: WorkflowContext<TInitialPayload>,
) => Promise<TResult>;

export interface CallSettings {
  url: string;
  method?: HTTPMethods;
  body?: string;
  headers?: Record<string, string>;
  retries?: number;
  /** An expression in milliseconds. */
  retryDelay?: string;
  timeout?: Duration | number;
  flowControl?: FlowControl;
}

export interface CallResponse<TResult = unknown> {
  status: number;
  body: TResult;
  header: Record<string, string[]>;
}

export interface WaitEventOptions {
  timeout?: number | Duration;
}

export interface WaitStepResponse<TEventData = unknown> {
  timeout: boolean;
  eventData: TEventData;
}

/** Somebody who waits for an event. */
export interface Waiter {
  url: string;
  /** Unix time in seconds. */
  deadline: number;
  headers: Record<string, string[]>;
  timeoutUrl?: string;
  timeoutBody?: unknown;
  timeoutHeaders?: Record<string, string[]>;
}

export interface NotifyResponse {
  waiter: Waiter;
  messageId: string;
  error: string;
}

export interface NotifyStepResponse {
  eventId: string;
  eventData: unknown;
  notifyResponse: NotifyResponse[];
}

export interface Webhook {
  webhookUrl: string;
  eventId: string;
}

export type WaitForWebhookResponse = { timeout: false; request: Request } | { timeout: true; request: undefined };

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

export interface InvokeStepResponse<TBody> {
  body: TBody;
  isCanceled?: boolean;
  isFailed?: boolean;
}

/** What is read of an official `Client` that is given as `qstashClient`. */
export interface WorkflowClient {
  http: { baseUrl: string; authorization: string; headers?: Headers };
}

export interface WorkflowReceiver {
  verify(request: { signature: string; body: string }): Promise<boolean>;
}

/** Of a failed run. */
export interface FailureFunctionPayload {
  error: string;
  message: string;
  stack?: string;
}

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
  /** An official client, whose server and token are used. Absent: QSTASH_URL and QSTASH_TOKEN. */
  qstashClient?: WorkflowClient;
  /** Of this endpoint, as the server reaches it. Absent: that of the request. */
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
} & ExclusiveValidationOptions<TInitialPayload>;
