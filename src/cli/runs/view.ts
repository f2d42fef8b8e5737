/** What of a run does a terminal show? */

/** A run as `GET /v2/workflows/logs` answers (contract W 18.1), as far as it is shown. */
export interface RunView {
  workflowRunId: string;
  workflowUrl: string;
  workflowState: string;
  workflowRunCreatedAt: number;
  workflowRunCompletedAt?: number;
  labels?: string[];
  dlqId?: string;
  /** What it returned. The client library parses this and the results of steps; the server has sent JSON as a text. */
  workflowRunResponse?: unknown;
  /** The failed run whose place it has taken, and the run that has taken its own. */
  predecessor?: { workflowRunId: string };
  successor?: { workflowRunId: string };
  invoker?: { workflowRunId: string };
  failureFunction?: { state?: string; url?: string };
  steps: { type: string; steps: StepView[] }[];
}

export interface StepView {
  stepName?: string;
  stepType?: string;
  state: string;
  createdAt?: number;
  retries?: number;
  /** What it recorded. */
  out?: unknown;
  errors?: { error?: string; body?: string; time?: number }[];
  nextDeliveryTime?: number;
  sleepUntil?: number;
  sleepFor?: number;
  callMethod?: string;
  callUrl?: string;
  callResponseStatus?: number;
  callResponseBody?: unknown;
  waitEventId?: string;
  waitTimeout?: boolean;
  waitTimeoutDeadline?: number;
  invokedWorkflowRunId?: string;
}
