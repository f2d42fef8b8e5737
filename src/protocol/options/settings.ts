/** The types of a message's configuration, which is parsed from headers and stored with the message (contract M 4.2). */

/** The header prefix in which a message was published and is delivered. */
export type Dialect = 'upstash' | 'waypost';

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Values in order of arrival, by canonical header name. A map has no prototype: `__proto__` is an ordinary name. */
export type HeaderMap = Record<string, string[]>;

/** The limits of a flow-control key, as a message sets them. */
export interface FlowControl {
  key: string;
  /** Maximum attempts in flight; unlimited if absent. */
  parallelism?: number;
  /** Maximum attempts started per period; unlimited if absent. */
  rate?: number;
  periodS: number;
}

/** Content that views must hide. Deliveries always carry the original content. */
export interface Redaction {
  body: boolean;
  /** `'all'`, or canonical header names. */
  headers: 'all' | string[];
}

/**
 * The trace that a message belongs to, from its publisher (W3C Trace Context). The trace is passed to each attempt, and
 * to all messages that follow from this message.
 */
export interface TraceContext {
  /** A valid `traceparent`. */
  parent: string;
  /** `tracestate`. */
  state?: string;
  /** `baggage`, which may be private and is sent only to hosts that a setting names. */
  baggage?: string;
}

/** Settings of a message's attempts. The trigger of a run sets all of these for the run; a step may override each. */
export interface AttemptSettings {
  /** Retries after the first attempt. */
  maxRetries: number;
  retryDelayExpression?: string;
  flowControl?: FlowControl;
}

/** The settings of published messages and callbacks; each member has a row in `config-options.ts`. */
export interface DeliverySettings extends Partial<AttemptSettings> {
  /** Limit of one attempt; absent: the configured maximum. */
  timeoutMs?: number;
  labels?: string[];
  redact?: Redaction;
  callback?: CallbackSettings;
  failureCallback?: CallbackSettings;
}

/** The configuration of a callback or failure callback message. Retries default to the retries of the source message. */
export interface CallbackSettings extends DeliverySettings {
  url: string;
  method: HttpMethod;
  header: HeaderMap;
  /** Features of the library that receives a call's result. */
  features?: WorkflowFeature[];
}

/** Features of a client library; unknown names are dropped. */
export type WorkflowFeature =
  | 'LazyFetch'
  | 'InitialBody'
  | 'WF_NoDelete'
  | 'WF_DetectTrigger'
  | 'WF_TriggerOnConfig'
  | 'WF_StepConfig';

/** The role of a message in its run. */
export type CallType = 'step' | 'toCallback' | 'fromCallback' | 'failureCall' | 'stepConfig';

/** The data of a message's run that the delivery of the message needs. */
export interface RunSettings {
  /** The key of the run's first message, which identifies the run in the store. */
  key: number;
  /** `Upstash-Workflow-RunId`. */
  id: string;
  /** `Upstash-Workflow-CreatedAt`: identifies the run for clients, together with the id. */
  createdAtMs: number;
  /** `Upstash-Workflow-Url`. */
  url: string;
  callType: CallType;
  /** Set on the first message of a run: whether the library that serves the URL is known. */
  init?: 'known' | 'unknown';
  /** The run was started by `/v2/trigger`: the first response must come from a library that speaks the protocol. */
  isRest?: true;
  features: WorkflowFeature[];
  /** Present when the message was published with settings for the step that its delivery executes. */
  stepSettings?: StepSettings;
}

/** The settings that one step sets instead of the trigger of its run (contract W 6.6). */
export type StepSettings = Partial<AttemptSettings>;

/** The message that will deliver the result of a wait or an invocation to a run, except for the result itself. */
export interface ResultMessage {
  url: string;
  header: HeaderMap;
  settings: MessageSettings;
}

/** A registered wait; the record's body is the step of the wait, verbatim. */
export interface WaitSettings {
  eventId: string;
  /** The original text, for the logs. */
  timeout: string;
  deadlineMs: number;
  notified: ResultMessage;
  timedOut: ResultMessage;
  /** Header maps as `GET /v2/waiters` shows them. */
  headers: HeaderMap;
  timeoutHeaders: HeaderMap;
  /** Base64; replaces the step in the message that reports the timeout. */
  timeoutBody?: string;
}

/** The invoked run; the record's body is the step of the invoking run, verbatim. */
export interface InvocationSettings {
  runKey: number;
  runId: string;
  url: string;
  createdAtMs: number;
  result: ResultMessage;
}

/** The data with which a publish starts or continues a run. */
export type RunRequest = RunStart | RunAppend;

export interface RunStart {
  kind: 'start';
  /** The id as the client sent it. If absent, the server generates an id. */
  runId?: string;
  features: WorkflowFeature[];
  /** Whether the body is an invocation instead of the payload. */
  isInvoke: boolean;
  /** Whether this is the second phase of a trigger, in which the library that serves the URL identifies itself. */
  isBySdk: boolean;
  /** Whether the first delivery asks which library serves the URL. */
  isUnknownSdk: boolean;
  isRest: boolean;
}

export interface RunAppend {
  kind: 'append';
  runId: string;
  /** Creation time of the run, if the sender gave it: it distinguishes runs with the same id. */
  createdAtMs?: number;
  callType: 'step' | 'toCallback' | 'stepConfig';
  features: WorkflowFeature[];
  stepSettings?: StepSettings;
}

/** Everything about a message that never changes after publish, except its destination, header map and body. */
export interface MessageSettings extends DeliverySettings {
  dialect: Dialect;
  maxRetries: number;
  topicName?: string;
  endpointName?: string;
  queueName?: string;
  scheduleId?: string;
  trace?: TraceContext;
  run?: RunSettings;
  /** Only in the record of a wait. */
  wait?: WaitSettings;
  /** Only in the record of an invocation. */
  invoke?: InvocationSettings;
  /** The message reports an operator event, so its own outcome causes no further event. No header sets this member. */
  isOperatorEvent?: true;
  /** The id of the message that this message repeats. No header sets this member. */
  replayOf?: string;
}

/** Whether duplicates of a publish are detected by an id or by the content. */
export type Deduplication = { by: 'id'; id: string } | { by: 'content' };

/** Messages for times of a schedule that passed while the server was down: none, one for all times, or one for each. */
export type ScheduleCatchUp = 'skip' | 'one' | 'all';

/** Whether a schedule is triggered while a message of its previous trigger is unfinished. */
export type ScheduleOverlap = 'allow' | 'skip';

/** All options of one publish, parsed. */
export interface PublishOptions {
  method: HttpMethod;
  /** Forwarded headers and `Content-Type`, without the headers that the server adds. */
  header: HeaderMap;
  /** The part of `header` that content-based deduplication compares: without headers from `Upstash-Header-Forward`. */
  explicitHeader: HeaderMap;
  settings: MessageSettings;
  /** Earliest delivery, counted from acceptance. Absent if `notBeforeMs` is set, which takes precedence. */
  delayMs?: number;
  notBeforeMs?: number;
  deduplication?: Deduplication;
  /** Present when the message belongs to a workflow run. */
  run?: RunRequest;
  /** Present when the publish creates a schedule. The expression is valid and has at least one future time. */
  cron?: string;
  scheduleId?: string;
  scheduleQueueName?: string;
  scheduleCatchUp?: ScheduleCatchUp;
  scheduleOverlap?: ScheduleOverlap;
}
