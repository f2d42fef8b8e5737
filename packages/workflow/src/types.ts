/** The values of the interface: those of `@upstash/workflow` 1.x, under the same names. */

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

export interface InvokeStepResponse<TBody> {
  body: TBody;
  isCanceled?: boolean;
  isFailed?: boolean;
}

/** An official `Client`: where it sends its requests, and with which headers, is read of it. */
export interface WorkflowClient {
  http: object;
}

/** How requests to the server are sent. */
export interface QStashClientExtraConfig {
  /** Sent with each request, and with each message of a run: to its endpoint, and to whoever `context.call` asks. */
  headers?: ConstructorParameters<typeof Headers>[0];
  /** How often a request that may be repeated is sent again, and after how many milliseconds. */
  retry?: false | { retries?: number; backoff?: (retryCount: number) => number };
  /** In place of `QSTASH_DEV`. */
  devMode?: boolean;
  /** Taken for the interface's sake: nothing is ever reported. */
  enableTelemetry?: boolean;
}

export interface WorkflowReceiver {
  /** `url`: of the endpoint, where its options or its environment say it. */
  verify(request: { signature: string; body: string; url?: string }): Promise<boolean>;
}

/** Of a failed run. */
export interface FailureFunctionPayload {
  error: string;
  message: string;
  stack?: string;
}
