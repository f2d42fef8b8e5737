// biome-ignore-all lint/performance/noBarrelFile: the public API of the package
/** Durable workflows on Waypost, with the API of `@upstash/workflow`. */
export { Client, type ClientConfig, type TriggerOptions } from './client.ts';
export type { DLQResumeRestartOptions, DLQResumeRestartResponse } from './dlq.ts';
export { WorkflowAbort, WorkflowError, WorkflowNonRetryableError, WorkflowRetryAfterError } from './errors.ts';
export type { StepError, StepLog, WorkflowRunLog, WorkflowRunLogs } from './logs.ts';
export { loggingMiddleware } from './middleware.ts';
export { Receiver } from './receiver.ts';
export { serve } from './serve.ts';
export { createWorkflow } from './serve-many.ts';
export {
  type AsyncStepFunction,
  type CallResponse,
  type CallSettings,
  type Duration,
  type FailureFunctionPayload,
  type FlowControl,
  type InvokeStepResponse,
  type NotifyResponse,
  type NotifyStepResponse,
  type QStashClientExtraConfig,
  type RawStep,
  type Step,
  type StepFunction,
  type StepType,
  StepTypes,
  type SyncStepFunction,
  type WaitEventOptions,
  type Waiter,
  type WaitForWebhookResponse,
  type WaitStepResponse,
  type Webhook,
  type WorkflowClient,
  type WorkflowReceiver,
} from './types.ts';
export {
  type ExclusiveValidationOptions,
  type InvokableWorkflow,
  type LazyInvokeStepParams,
  type RouteFunction,
  WorkflowContext,
  WorkflowMiddleware,
  type WorkflowServeOptions,
} from './workflow.ts';
