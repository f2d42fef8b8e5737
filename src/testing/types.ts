/** The types of `waypost/testing`. This file imports nothing, since no other module is published with declarations. */

/** Starts a server for tests in this process. Rejects if a setting is invalid. */
export declare const startWaypost: (options?: WaypostOptions) => Promise<Waypost>;

/** A number of milliseconds, or a text such as `'7d'`, `'1h30m'`, `'500ms'`; a text without a unit is in seconds. */
export type Duration = number | string;

export interface SigningKeys {
  current: string;
  next: string;
}

/** The variables that `@upstash/qstash` and `@upstash/workflow` read. */
export interface WaypostEnvironment extends Record<string, string> {
  QSTASH_URL: string;
  QSTASH_TOKEN: string;
  QSTASH_CURRENT_SIGNING_KEY: string;
  QSTASH_NEXT_SIGNING_KEY: string;
}

export interface WaypostOptions {
  /** Settings of the server by the names of their variables, such as `WAYPOST_RETRIES_DEFAULT`. */
  settings?: Readonly<Record<string, string>>;
  /** The virtual time at the start. Default: now. */
  startAt?: Date;
  /** Called with each log event of the server. Default: log events are discarded. */
  log?: (level: 'debug' | 'info' | 'warn' | 'error', event: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** A fault of future attempts. */
export interface Disturbance {
  /**
   * A number: the attempt gets a response with this status, and the endpoint is not called. `'lost'`: the endpoint is
   * called, but the response is lost, and the attempt times out in virtual time.
   */
  answer?: number | 'lost';
  /** The body of the response, if `answer` is a status. Default: empty. */
  body?: string;
  /** How long the response takes in virtual time. */
  delay?: Duration;
  /** The fault affects only attempts to URLs that start with this text. Default: all attempts of the project. */
  to?: string;
  /** The number of attempts that the fault affects. Default: 1. */
  times?: number;
}

export type MessageState =
  | 'CREATED'
  | 'ACTIVE'
  | 'DELIVERED'
  | 'ERROR'
  | 'RETRY'
  | 'FAILED'
  | 'CANCEL_REQUESTED'
  | 'CANCELED';

type Headers = Record<string, string[]>;

/**
 * An entry of a message's log, as `GET /v2/logs` returns it, with decoded bodies. Times are Unix milliseconds of virtual
 * time.
 */
export interface LogEntryView {
  time: number;
  messageId: string;
  state: MessageState;
  url: string;
  method: string;
  header?: Headers;
  body?: string;
  error?: string;
  nextDeliveryTime?: number;
  responseStatus?: number;
  responseBody?: string;
  responseHeaders?: Headers;
  maxRetries: number;
  topicName?: string;
  queueName?: string;
  scheduleId?: string;
  labels?: string[];
  flowControlKey?: string;
}

/** A published message, with its state and its log. */
export interface MessageView {
  messageId: string;
  url: string;
  method: string;
  /** The state in the newest entry of the message's log. */
  state: MessageState;
  /** How many attempts have started. */
  attempts: number;
  body: string;
  /** The log of the message, oldest entry first. */
  entries: LogEntryView[];
}

export interface StepView {
  stepName?: string;
  stepType?: string;
  state: 'STEP_PROGRESS' | 'STEP_RETRY' | 'STEP_PARKED' | 'STEP_SUCCESS' | 'STEP_FAILED' | 'STEP_CANCELED';
  messageId?: string;
  /** The result of the step, as JSON. */
  out?: string;
  nextDeliveryTime?: number;
  errors?: { error: string; body: string; status?: number; time: number }[];
}

/** A workflow run, as `GET /v2/workflows/logs` returns it. */
export interface RunView {
  workflowRunId: string;
  workflowUrl: string;
  workflowState: 'RUN_STARTED' | 'RUN_SUCCESS' | 'RUN_FAILED' | 'RUN_CANCELED';
  workflowRunCreatedAt: number;
  workflowRunCompletedAt?: number;
  /** The return value of the workflow, as JSON. */
  workflowRunResponse?: string;
  steps: { type: 'sequential' | 'parallel' | 'next'; steps: StepView[] }[];
  labels?: string[];
  dlqId?: string;
}

/** An entry of the dead letter queue: a dead message, or the message with which a run failed. */
export interface DeadView {
  dlqId: string;
  messageId: string;
  url: string;
  method: string;
  header?: Headers;
  body?: string;
  createdAt: number;
  /** 0 if there was no response. */
  responseStatus: number;
  responseBody?: string;
  /** Present only for a workflow run. */
  workflowRunId?: string;
  workflowUrl?: string;
  queueName?: string;
  scheduleId?: string;
  labels?: string[];
}

/**
 * A project, isolated from other projects: each project has its own names, messages, logs, signing keys and disturbances.
 */
export interface WaypostProject {
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  readonly token: string;
  readonly signingKeys: Readonly<SigningKeys>;
  /** The variables for the clients of this project, for `process.env` or for an environment that a client is given. */
  env(): WaypostEnvironment;
  /** All messages that are still in the log, oldest first, except messages of workflow runs, which `runs` returns. */
  messages(): Promise<MessageView[]>;
  /** All workflow runs, oldest first. */
  runs(): Promise<RunView[]>;
  /** The dead letter queue, oldest first: messages and workflow runs. */
  dlq(): Promise<DeadView[]>;
  /** Disturbs future attempts. Disturbances are used up in the order in which they were requested. */
  disturb(disturbance: Disturbance): void;
}

/** A server in this process, with a store in memory and a virtual clock that only the test advances. */
export interface Waypost extends WaypostProject {
  /** The virtual time. */
  now(): Date;
  /**
   * Moves the clock forward. Everything that becomes due on the way happens in order; the clock stops during each
   * attempt. Resolves when all this work is finished.
   */
  advance(duration: Duration): Promise<void>;
  /**
   * Jumps from one due time to the next until no message and no run waits for a due time. Ignores the times of schedules,
   * which never end. Rejects if something still waits after `limit` (default: 366 days).
   */
  runUntilIdle(options?: { limit?: Duration }): Promise<void>;
  /** Restarts the server with its stored data. Attempts in flight are interrupted and repeated. */
  restart(): Promise<void>;
  /** Creates a project, to isolate a test from other tests. All projects share the clock. */
  project(): Promise<WaypostProject>;
  stop(): Promise<void>;
}
