/** The shapes in which a message's configuration travels from the wire to the store and back (messaging.md 4.2). */

/** The header prefix a message was published with; it is delivered in the same one (messaging.md 0.3). */
export type Dialect = 'upstash' | 'waypost';

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Canonical header name to its values in arrival order (messaging.md 3.5). Has no prototype: `__proto__` is only a name. */
export type HeaderMap = Record<string, string[]>;

/** Limits of one flow-control key as a message states them (messaging.md 16.2). */
export interface FlowControl {
  key: string;
  /** Attempts in flight at most; absent: not limited. */
  parallelism?: number;
  /** Attempts started per period at most; absent: not limited. */
  rate?: number;
  periodS: number;
}

/** What views must hide (messaging.md 19). Deliveries always carry the originals. */
export interface Redaction {
  body: boolean;
  /** `'all'`, or canonical header names. */
  headers: 'all' | string[];
}

/** A callback or failure callback and the configuration of the message it will become (messaging.md 9.4). */
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
}

/** How a publish asks not to be made twice (messaging.md 11). */
export type Deduplication = { by: 'id'; id: string } | { by: 'content' };

/** What becomes of a schedule's times that passed while nothing could be triggered: nothing, one message, or one each. */
export type ScheduleCatchUp = 'skip' | 'one' | 'all';

/** Whether a schedule is triggered while a message of the trigger before is unfinished. */
export type ScheduleOverlap = 'allow' | 'skip';

/** The outcome of reading the config headers of one publish (messaging.md 4). */
export interface PublishOptions {
  method: HttpMethod;
  /** Forwarded headers and `Content-Type`; nothing the server adds. */
  header: HeaderMap;
  /** The part of `header` that was given explicitly, for content-based deduplication (messaging.md 4.5, 11.2). */
  explicitHeader: HeaderMap;
  settings: MessageSettings;
  /** Earliest delivery after acceptance. Not set together with `notBeforeMs`, which wins. */
  delayMs?: number;
  notBeforeMs?: number;
  deduplication?: Deduplication;
  /** Present when the publish is really a schedule creation: valid, and with a time to come. */
  cron?: string;
  scheduleId?: string;
  scheduleQueueName?: string;
  scheduleCatchUp?: ScheduleCatchUp;
  scheduleOverlap?: ScheduleOverlap;
}
