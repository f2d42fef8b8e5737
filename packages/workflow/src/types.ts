/** The types of the public API: the types of `@upstash/workflow` 1.x, with the same names. */

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

/** A step in the journal: a result, or the plan of a step in a group (`stepId` 0, with `targetStep`). */
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

/** An entry of the journal as it is delivered; `body` is base64. */
export interface RawStep {
  messageId: string;
  body: string;
  callType: 'step' | 'toCallback' | 'fromCallback';
}

/** A limit that messages with the same key share: how many at a time, and how many per period. */
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

export interface CallSettings {
  url: string;
  method?: HTTPMethods;
  body?: string;
  headers?: Record<string, string>;
  retries?: number;
  /** An expression that gives milliseconds. */
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

/** A run that waits for an event. */
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

export interface InvokeStepResponse<TBody> {
  body: TBody;
  isCanceled?: boolean;
  isFailed?: boolean;
}

/** An official `Client`. Its `http` member has the address of the server and the headers of the requests. */
export interface WorkflowClient {
  http: object;
}

/** Options for requests to the server. */
export interface QStashClientExtraConfig {
  /**
   * Sent with each request and with each message of a run, both to the endpoint and to destinations of `context.call`.
   */
  headers?: ConstructorParameters<typeof Headers>[0];
  /** How often an idempotent request is retried, and the delay before each retry in milliseconds. */
  retry?: false | { retries?: number; backoff?: (retryCount: number) => number };
  /** Overrides `QSTASH_DEV`. */
  devMode?: boolean;
  /** Accepted for compatibility: nothing is ever reported. */
  enableTelemetry?: boolean;
}

export interface WorkflowReceiver {
  /** `url` is the URL of the endpoint, if its options or its environment set it. */
  verify(request: { signature: string; body: string; url?: string }): Promise<boolean>;
}

/** The error that a failed run reported. */
export interface FailureFunctionPayload {
  error: string;
  message: string;
  stack?: string;
}
