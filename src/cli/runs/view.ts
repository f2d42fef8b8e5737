/** The members of a run that the command line shows. */

/** The number of requested characters of each body: more characters than the command line shows. */
export const BODY_LENGTH_MAX = 2_000;

/** A run as `GET /v2/workflows/logs` returns it (contract W 18.1), without the members that are not shown. */
export interface RunView {
  workflowRunId: string;
  workflowUrl: string;
  workflowState: string;
  workflowRunCreatedAt: number;
  workflowRunCompletedAt?: number;
  labels?: string[];
  dlqId?: string;
  /**
   * The result of the run. The server sends the result as JSON text; the client library passes the parsed value. The same
   * is true for the results of steps.
   */
  workflowRunResponse?: unknown;
  /** The failed run that this run replaces, and the run that replaces this one. */
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
  /** The step's result. */
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
