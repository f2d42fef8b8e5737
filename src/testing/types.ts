/** What `import 'waypost/testing'` gives, as types. They stand alone, since nothing else is published with declarations. */

/** Starts a server for tests in this process. Rejects for settings that cannot be. */
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
  /** Where the virtual time begins. Default: now. */
  startAt?: Date;
  /** Hears what the server would log. Default: nobody does. */
  log?: (level: 'debug' | 'info' | 'warn' | 'error', event: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** What is to go wrong. */
export interface Disturbance {
  /**
   * A status: the attempt gets this answer, and the endpoint is not called. `'lost'`: the endpoint is called, but its answer
   * never comes, until the attempt's timeout has passed in virtual time.
   */
  answer?: number | 'lost';
  /** Of an answer with a status. Default: empty. */
  body?: string;
  /** How long the answer takes in virtual time. */
  delay?: Duration;
  /** Only attempts to URLs that begin with this. Default: all of the project. */
  to?: string;
  /** How many attempts. Default: 1, the next one. */
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

/** An entry of a message's log, as `GET /v2/logs` gives it, with bodies as text. Times are Unix milliseconds in virtual time. */
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

/** A message that was published, and what became of it. */
export interface MessageView {
  messageId: string;
  url: string;
  method: string;
  /** Of the newest entry in its log. */
  state: MessageState;
  /** How many attempts were begun. */
  attempts: number;
  body: string;
  /** Its log, oldest first. */
  entries: LogEntryView[];
}

export interface StepView {
  stepName?: string;
  stepType?: string;
  state: 'STEP_PROGRESS' | 'STEP_RETRY' | 'STEP_PARKED' | 'STEP_SUCCESS' | 'STEP_FAILED' | 'STEP_CANCELED';
  messageId?: string;
  /** The result, as JSON. */
  out?: string;
  nextDeliveryTime?: number;
  errors?: { error: string; body: string; status?: number; time: number }[];
}

/** A workflow run, as `GET /v2/workflows/logs` gives it. */
export interface RunView {
  workflowRunId: string;
  workflowUrl: string;
  workflowState: 'RUN_STARTED' | 'RUN_SUCCESS' | 'RUN_FAILED' | 'RUN_CANCELED';
  workflowRunCreatedAt: number;
  workflowRunCompletedAt?: number;
  /** What the workflow returned, as JSON. */
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
  /** 0 without an answer. */
  responseStatus: number;
  responseBody?: string;
  /** Only of a run. */
  workflowRunId?: string;
  workflowUrl?: string;
  queueName?: string;
  scheduleId?: string;
  labels?: string[];
}

/** Its names, messages, logs, signing keys and disturbances are its own. */
export interface WaypostProject {
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  readonly token: string;
  readonly signingKeys: Readonly<SigningKeys>;
  /** For `process.env`, or for a client's own environment. */
  env(): WaypostEnvironment;
  /** All messages that the log still knows, oldest first; those of workflow runs are in `runs`. */
  messages(): Promise<MessageView[]>;
  /** All workflow runs, oldest first. */
  runs(): Promise<RunView[]>;
  /** The dead letter queue, oldest first: messages and workflow runs. */
  dlq(): Promise<DeadView[]>;
  /** Attempts to come go wrong. Disturbances are used up in the order in which they were asked for. */
  disturb(disturbance: Disturbance): void;
}

/** A whole server in this process, with its store in memory, on a virtual clock that only the test advances. */
export interface Waypost extends WaypostProject {
  /** The virtual time. */
  now(): Date;
  /**
   * Lets this much time pass: what falls due on the way happens in its order, and time stands still during each attempt.
   * Resolves when nothing is left to do.
   */
  advance(duration: Duration): Promise<void>;
  /**
   * Lets time pass from one due time to the next until no message and no run waits for any. The times of schedules are
   * not waited for, since they never end. Rejects when something still waits after `limit` (default: 366 days).
   */
  runUntilIdle(options?: { limit?: Duration }): Promise<void>;
  /** Ends the server and starts it anew on what it has stored. An attempt under way is interrupted, and made again. */
  restart(): Promise<void>;
  /** A new project, for a test that must not see what others do. Time is the same for all. */
  project(): Promise<WaypostProject>;
  stop(): Promise<void>;
}
