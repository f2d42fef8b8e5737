/** The logs of runs, as the server reports them (contract W 18). */
import type { RawStep, StepType } from './types.ts';

type Headers = Record<string, string[]>;

export interface StepError {
  error: string;
  body: string;
  headers: Headers;
  status: number;
  /** Unix time in milliseconds, like all times in this file. */
  time: number;
}

export interface StepLog {
  stepId?: number;
  stepName: string;
  stepType: StepType;
  callType: RawStep['callType'];
  messageId: string;
  out: unknown;
  retries: number;
  retryDelay?: string;
  concurrent: number;
  state: 'STEP_PROGRESS' | 'STEP_SUCCESS' | 'STEP_RETRY' | 'STEP_PARKED' | 'STEP_FAILED';
  createdAt: number;
  headers: Headers;
  sleepFor?: number;
  sleepUntil?: number;
  callUrl?: string;
  callMethod?: string;
  callHeaders?: Headers;
  callBody?: unknown;
  callResponseStatus?: number;
  callResponseBody?: unknown;
  callResponseHeaders?: Headers;
  invokedWorkflowRunId?: string;
  invokedWorkflowUrl?: string;
  invokedWorkflowCreatedAt?: number;
  invokedWorkflowRunBody?: unknown;
  invokedWorkflowRunHeaders?: Headers;
  waitEventId?: string;
  waitTimeoutDuration?: string;
  waitTimeoutDeadline?: number;
  waitTimeout?: boolean;
}

type StepLogGroup =
  | { steps: [StepLog]; type: 'sequential' }
  | { steps: StepLog[]; type: 'parallel' }
  | {
      steps: {
        messageId: string;
        stepName?: string;
        state: 'STEP_PROGRESS' | 'STEP_RETRY' | 'STEP_PARKED' | 'STEP_FAILED' | 'STEP_CANCELED';
        retries: number;
        retryDelay?: string;
        errors?: StepError[];
      }[];
      type: 'next';
    };

export type FailureFunctionState = 'CALLBACK_INPROGRESS' | 'CALLBACK_SUCCESS' | 'CALLBACK_FAIL' | 'CALLBACK_CANCELED';

export interface WorkflowRunLog {
  workflowRunId: string;
  workflowUrl: string;
  workflowState: 'RUN_STARTED' | 'RUN_SUCCESS' | 'RUN_FAILED' | 'RUN_CANCELED';
  workflowRunCreatedAt: number;
  workflowRunCompletedAt?: number;
  failureFunction?: {
    messageId: string;
    url: string;
    state: FailureFunctionState;
    failHeaders: Headers;
    failStatus: number;
    failResponse: string;
    dlqId: string;
    errors?: StepError[];
    responseBody?: string;
    responseHeaders?: Headers;
    responseStatus?: number;
    nextDeliveryTime?: number;
  };
  steps: StepLogGroup[];
  workflowRunResponse?: string;
  invoker?: { workflowRunId: string; workflowUrl: string; workflowRunCreatedAt: number };
  dlqId?: string;
  label?: string;
  labels?: string[];
}

export interface WorkflowRunLogs {
  /** Absent on the last page. */
  cursor: string;
  runs: WorkflowRunLog[];
}

/** A failed run in the DLQ. */
export interface DLQMessage {
  header: Headers;
  body: string;
  maxRetries: number;
  notBefore: number;
  createdAt: number;
  callerIP: string;
  workflowRunId: string;
  workflowCreatedAt: number;
  workflowUrl: string;
  responseStatus: number;
  responseHeader: Headers;
  responseBody: string;
  dlqId: string;
  failureCallback?: string;
  failureCallbackInfo?: {
    state?: FailureFunctionState;
    responseStatus?: number;
    responseBody?: string;
    responseHeaders?: Headers;
  };
  label?: string;
  labels?: string[];
}
