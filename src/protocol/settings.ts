/** The shapes in which a message's configuration travels from the wire to the store and back (contract M 4.2). */

/** The header prefix a message was published with; it is delivered in the same one. */
export type Dialect = 'upstash' | 'waypost';

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Canonical header name to its values in arrival order. Has no prototype: `__proto__` is only a name. */
export type HeaderMap = Record<string, string[]>;

/** Limits of one flow-control key as a message states them. */
export interface FlowControl {
  key: string;
  /** Attempts in flight at most; absent: not limited. */
  parallelism?: number;
  /** Attempts started per period at most; absent: not limited. */
  rate?: number;
  periodS: number;
}

/** What views must hide. Deliveries always carry the originals. */
export interface Redaction {
  body: boolean;
  /** `'all'`, or canonical header names. */
  headers: 'all' | string[];
}

/** A callback or failure callback and the configuration of the message it will become. */
export interface CallbackSettings {
  url: string;
  method: HttpMethod;
  header: HeaderMap;
  /** Absent: the source message's `maxRetries`. */
  maxRetries?: number;
  retryDelayExpression?: string;
  timeoutMs?: number;
  labels?: string[];
  redact?: Redaction;
  flowControl?: FlowControl;
  callback?: CallbackSettings;
  failureCallback?: CallbackSettings;
  /** What the receiver of a call's result can do. */
  features?: WorkflowFeature[];
}

/** What a client library can do; names that are not known here are not kept. */
export type WorkflowFeature =
  | 'LazyFetch'
  | 'InitialBody'
  | 'WF_NoDelete'
  | 'WF_DetectTrigger'
  | 'WF_TriggerOnConfig'
  | 'WF_StepConfig';

/** What a message is to the run that it belongs to. */
export type CallType = 'step' | 'toCallback' | 'fromCallback' | 'failureCall' | 'stepConfig';

/** What makes a message part of a workflow run: all of the run that its delivery needs to know. */
export interface RunPart {
  /** The key of the run's first message, by which the store knows the run. */
  key: number;
  /** `Upstash-Workflow-RunId`. */
  id: string;
  /** `Upstash-Workflow-CreatedAt`: with the id it identifies the run. */
  createdAtMs: number;
  /** `Upstash-Workflow-Url`. */
  url: string;
  callType: CallType;
  /** On the first message of a run: whether it is known which library serves the URL. */
  init?: 'known' | 'unknown';
  /** Started by `/v2/trigger`: its first answer must come from a library that knows how. */
  isRest?: true;
  features: WorkflowFeature[];
}

/** The message that brings a run the result of a wait or an invocation, as far as it is known when that begins. */
export interface ResultPart {
  url: string;
  header: HeaderMap;
  settings: MessageSettings;
}

/** What a wait was registered with; the record's body is its step, verbatim. */
export interface WaitPart {
  eventId: string;
  /** As it was sent, for the logs. */
  timeout: string;
  deadlineMs: number;
  notified: ResultPart;
  timedOut: ResultPart;
  /** Header maps as `GET /v2/waiters` shows them. */
  headers: HeaderMap;
  timeoutHeaders: HeaderMap;
  /** Base64; takes the place of the step in the message that tells of the time-out. */
  timeoutBody?: string;
}

/** What was invoked; the record's body is the parent's step, verbatim. */
export interface InvokePart {
  runKey: number;
  runId: string;
  url: string;
  createdAtMs: number;
  result: ResultPart;
}

/** What a publish says of the run that it is for. */
export type RunRequest = RunStart | RunAppend;

export interface RunStart {
  kind: 'start';
  /** Verbatim; absent: the server makes one. */
  runId?: string;
  features: WorkflowFeature[];
  /** The body is an invocation, not the payload. */
  isInvoke: boolean;
  /** The second phase of a trigger: the library behind the URL makes itself known. */
  isBySdk: boolean;
  /** Its first delivery is to find out which library serves the URL. */
  isUnknownSdk: boolean;
  isRest: boolean;
}

export interface RunAppend {
  kind: 'append';
  runId: string;
  /** Which incarnation of the run the sender belongs to, where it says so. */
  createdAtMs?: number;
  callType: 'step' | 'toCallback' | 'stepConfig';
  features: WorkflowFeature[];
}

/** Everything about a message that never changes after publish, next to its destination, header map and body. */
export interface MessageSettings {
  dialect: Dialect;
  /** Retries after the first attempt. */
  maxRetries: number;
  retryDelayExpression?: string;
  /** Limit of one attempt; absent: the configured maximum. */
  timeoutMs?: number;
  labels?: string[];
  redact?: Redaction;
  flowControl?: FlowControl;
  callback?: CallbackSettings;
  failureCallback?: CallbackSettings;
  topicName?: string;
  endpointName?: string;
  queueName?: string;
  scheduleId?: string;
  run?: RunPart;
  /** Only in the record of a wait. */
  wait?: WaitPart;
  /** Only in the record of an invocation. */
  invoke?: InvokePart;
}

/** How a publish asks not to be made twice. */
export type Deduplication = { by: 'id'; id: string } | { by: 'content' };

/** What becomes of a schedule's times that passed while nothing could be triggered: nothing, one message, or one each. */
export type ScheduleCatchUp = 'skip' | 'one' | 'all';

/** Whether a schedule is triggered while a message of the trigger before is unfinished. */
export type ScheduleOverlap = 'allow' | 'skip';

/** The outcome of reading the config headers of one publish. */
export interface PublishOptions {
  method: HttpMethod;
  /** Forwarded headers and `Content-Type`; nothing the server adds. */
  header: HeaderMap;
  /** The part of `header` that was given explicitly, for content-based deduplication. */
  explicitHeader: HeaderMap;
  settings: MessageSettings;
  /** Earliest delivery after acceptance. Not set together with `notBeforeMs`, which wins. */
  delayMs?: number;
  notBeforeMs?: number;
  deduplication?: Deduplication;
  /** Present when the message belongs to a workflow run. */
  run?: RunRequest;
  /** Present when the publish is really a schedule creation: valid, and with a time to come. */
  cron?: string;
  scheduleId?: string;
  scheduleQueueName?: string;
  scheduleCatchUp?: ScheduleCatchUp;
  scheduleOverlap?: ScheduleOverlap;
}
