/**
 * The types of the engine: a message, its attempt, the outcome of an attempt, and the change that is saved for it. Their names
 * follow docs/glossary.md.
 */
import type { HeaderMap, HttpMethod, MessageSettings, TraceContext } from '../protocol/options/settings.ts';
import type { EndState, EntryKind, FailureCallbackState, RunConfig, RunKey, RunState } from '../workflow/model.ts';
import type { OperatorEventKind } from './operator-events/kinds.ts';
import type { WaitState } from './wait-state.ts';

export type { EntryKind, FailureCallbackState };

/** A Unix time or a duration, in milliseconds. */
export type Millis = number;
/**
 * The only key of a message in the store. It defines the order of messages and is a part of the message id. A safe
 * integer.
 */
export type MessageKey = number;
/** The result of a request to attempt a message at once. `attempting`: an attempt is already in flight. */
export type MadeDue = 'due' | 'attempting' | 'missing';
/** An id with the prefix `msg_`. */
export type MessageId = string;
/** The number of a store in an installation with several stores. The first store has the number 1. */
export type CellId = number;
/**
 * The size of a cell's range of numbers: a number assigned in one cell is unique in all cells. The ranges of a thousand
 * cells are below 2^53. At 10,000 messages a second a range lasts for years.
 */
export const NUMBERS_OF_CELL = 2 ** 43;

/** The cell that assigned the number. */
export function cellOfNumber(number: number): CellId {
  return Math.ceil(number / NUMBERS_OF_CELL);
}

/** The cell with the directory. */
export const FIRST_CELL: CellId = 1;

/** Internal number of a project; the wire shows its name. */
export type ProjectId = number;
/** Unique among all claims of all workers, for ever (P6). A safe integer. */
export type ClaimToken = number;
/** Identifies one start of a worker: after a restart, the worker has a new id. */
export type WorkerId = string;

/** Arguments of an operation in one project. */
export interface InProject {
  projectId: ProjectId;
}

/** Arguments of an operation in one project, with its time. */
export interface InProjectAt extends InProject {
  nowMs: Millis;
}

/** A message as it was published. It never changes. */
export interface Message {
  key: MessageKey;
  id: MessageId;
  projectId: ProjectId;
  /** The accepted destination, verbatim. */
  url: string;
  /** Scheme, host and port of `url`, as `new URL(url).origin` writes it. Endpoint backlogs and windows are per origin. */
  origin: string;
  method: HttpMethod;
  header: HeaderMap;
  body: Uint8Array;
  createdAtMs: Millis;
  /** The requested time, even if this time was in the past. See `firstDueAtMs`. */
  notBeforeMs: Millis;
  callerIp?: string;
  settings: MessageSettings;
}

/**
 * When the message is first due. A date before the acceptance means no delay, and does not make the message due earlier
 * than other messages that were accepted with it (contract M 12).
 */
export function firstDueAtMs({ createdAtMs, notBeforeMs }: Pick<Message, 'createdAtMs' | 'notBeforeMs'>): Millis {
  return Math.max(createdAtMs, notBeforeMs);
}

/** A message that one worker owns: from its acceptance or claim until it is settled or released. */
export interface Claimed {
  message: Message;
  /** Retries already made; the value of `Upstash-Retried`. */
  retried: number;
  /** The number of consecutive latest attempts that parked the run; absent: 0. */
  parkings?: number;
  claimToken: ClaimToken;
  /** The position of the message in the journal of its run; absent if the message is in no journal. */
  journal?: JournalPosition;
  /** Set when a call continues with the message, which is then not sent. */
  isInCall?: true;
  /** The body that is sent instead of the message's own: the journal of its run. */
  deliveredBody?: Uint8Array;
  /** Set when the message is in no lane and in no run: settling the message touches no shared rows. Absent: not known. */
  isAlone?: true;
  /** When the claim was made and ACTIVE was logged: no later event of the message may be earlier. */
  claimedAtMs: Millis;
  /** The duration of the attempt; absent before the attempt has ended. */
  durationMs?: Millis;
  /** The trace with the attempt as parent, if attempts are spans. The endpoint and follow-up messages get this trace. */
  trace?: TraceContext;
}

/** A claim of a message, with the fields that its release needs. */
export interface ClaimRef {
  key: MessageKey;
  projectId: ProjectId;
  claimToken: ClaimToken;
}

/** The position of a message in the journal of its run. */
export interface JournalPosition {
  /** The delivered body has the journal entries up to this position. */
  position: number;
  /** The number of bytes of the delivered body; 0 if the endpoint must fetch the body. */
  bytes: number;
}

/** Why there was no usable response. docs/errors.md is generated from these comments. */
export type UnreachableReason =
  /**
   * The host resolves to an address to which deliveries are not allowed.
   * Remedy: have the operator allow the host or its network with [`WAYPOST_ALLOW_DESTINATIONS`](settings.md); cloud metadata
   * addresses are only allowed by `all`.
   */
  | 'blocked'
  /**
   * The host name has no address, or no name server responded.
   * Remedy: resolve the name on the server's machine, inside its container if it has one: a name that your laptop resolves may be
   * unknown there.
   */
  | 'dns'
  /**
   * Nothing listens at the address, or it is unreachable.
   * Remedy: start the app, and check that it listens on an address that the server can reach: inside a container, 127.0.0.1 is
   * the container.
   */
  | 'refused'
  /**
   * The TLS handshake failed: the certificate has expired, is for another name or from an unknown authority, or the port does not
   * use TLS.
   * Remedy: fix the certificate, or use `http://` if there is no TLS; `NODE_EXTRA_CA_CERTS` adds an authority of your own.
   */
  | 'tls'
  /**
   * The endpoint, or a proxy in front of it, closed the connection before the response was complete.
   * Remedy: check the logs of the app and of its proxy for that time: usually the process ended or was restarted.
   */
  | 'reset'
  /**
   * No complete response arrived within the timeout of the message.
   * Remedy: respond sooner and split long work into steps, or set a longer `Upstash-Timeout`.
   */
  | 'timeout'
  /**
   * The response is not valid HTTP/1.1, or its headers are too large. Defects that common clients accept, such as a folded header
   * line, are accepted.
   * Remedy: see the text for the defect, and check the port: another program than the app may respond there.
   */
  | 'malformed'
  /**
   * HTTP cannot express the request, so it is not retried.
   * Remedy: publish it without the header that the text names.
   */
  | 'unsendable';

/** The outcome of one HTTP request. */
export type Outcome =
  | {
      kind: 'responded';
      status: number;
      header: HeaderMap;
      body: Uint8Array;
      /** Set when the body was longer than the part that is kept. */
      isCut?: true;
      /**
       * Frees the memory of the response, for which other responses may wait. Call this method once the outcome is saved.
       */
      release?(): void;
    }
  /** `error` names the class of failure and never an internal address. */
  | { kind: 'unreachable'; reason: UnreachableReason; error: string }
  /** The shutdown of this worker interrupted the attempt. The endpoint has not failed, so the attempt is not counted. */
  | { kind: 'interrupted' };

/** The states of messages in logs. */
export const LOG_STATES = [
  'CREATED',
  'ACTIVE',
  'DELIVERED',
  'ERROR',
  'RETRY',
  'FAILED',
  'CANCEL_REQUESTED',
  'CANCELED',
] as const;

/** STEP_PARKED is only for a message of a run whose code has changed. The attempt has not failed (contract K 7). */
export type LogState = (typeof LOG_STATES)[number] | 'STEP_PARKED';

/** The states of runs in logs. */
export type RunLogState = RunState | 'WAITER_ADDED' | 'INVOKED' | 'STEP_PARKED';

export const RUN_LOG_STATES = [
  'RUN_STARTED',
  'RUN_SUCCESS',
  'RUN_FAILED',
  'RUN_CANCELED',
  'WAITER_ADDED',
  'INVOKED',
  'STEP_PARKED',
] as const satisfies RunLogState[];

/** The details of an ERROR, RETRY, STEP_PARKED or delayed CREATED event. */
export interface LogDetail {
  error?: string;
  nextDeliveryTimeMs?: Millis;
  /** Present when there was a response. */
  response?: { status: number; header: HeaderMap; body: Uint8Array };
}

/** One state change, logged in the transaction that makes the change (P3). */
export interface LogEvent {
  atMs: Millis;
  state: LogState;
  detail?: LogDetail;
  /** The status of a successful response; the status of a failed attempt is in `detail`. */
  responseStatus?: number;
}

/**
 * The state that a worker proposes for a new message. Only the transaction that saves the message knows whether its lanes
 * have capacity.
 */
export type NewMessageState =
  | { kind: Extract<WaitState, 'due' | 'origin'>; dueAtMs: Millis }
  /** The message is saved as claimed by the worker that has accepted it. */
  | { kind: 'claimed'; claimToken: ClaimToken; worker: WorkerId };

/** A message on its way into the store. */
export interface NewMessage {
  message: Message;
  /** The proposal of the worker; a lane may make the message wait. */
  state: NewMessageState;
  /**
   * The log events of a message that is not sent. Absent: the events are CREATED and, if the message is saved as claimed,
   * ACTIVE.
   */
  events?: LogEvent[];
  /** The deduplication hash is reserved in the same transaction. If the hash is already taken, no message is saved. */
  deduplication?: { hash: string; expiresAtMs: Millis };
  /** The entry of the message in the journal of its run, added in the same transaction. */
  entry?: NewEntry;
  /** The run that starts with the message; `entry` is then the first entry of the run. */
  run?: NewRun;
  /** Set when the message follows from another message or from a run, and was not published. */
  isFollowUp?: true;
}

/** An entry for the journal of a run. Each entry key of the run is added only once (P8). */
export interface NewEntry {
  runKey: RunKey;
  kind: EntryKind;
  /** Identifies the content of the entry in the run, such as the result of step 3. `workflow/steps.ts` makes this key. */
  entryKey: string;
  /** Bytes that the entry adds to a delivered body; 0 if deliveries omit the entry. */
  bytes: number;
  /**
   * If the delivered body is larger than this, it is not sent, and the endpoint fetches it. Absent: every body is sent.
   */
  lazyAboveBytes?: number;
  /** The version of the run for which the entry was made; absent: any version. */
  runVersion?: number;
}

/** A run on its way into the store. The key of the run is the key of its first message. */
export interface NewRun {
  id: string;
  url: string;
  createdAtMs: Millis;
  config: RunConfig;
  /** Set in the second phase of a trigger: the message replaces the first message of the active run with this id. */
  isBySdk?: true;
  /** The invocation in the parent's journal that waits for this run. */
  invoker?: NewRecord;
}

/** A journal entry that is not a message: a wait or an invocation. Its content is stored like a message, but is never sent. */
export interface NewRecord {
  message: Message;
  entry: NewEntry;
}

/** The end of a run. One transaction saves the end and its follow-up messages. */
export interface RunEnding {
  projectId: ProjectId;
  runKey: RunKey;
  /** The version of the run for which `follows` was made. */
  runVersion: number;
  state: EndState;
  atMs: Millis;
  /** The result of the run; only with RUN_SUCCESS. */
  response?: Uint8Array;
  /** The message that reports the failure; only with RUN_FAILED. */
  failureCallbackKey?: MessageKey;
}

/** A follow-up message before it has a key, an id and a state. */
export interface FollowUp extends Omit<Message, 'key' | 'id'> {
  /** The journal entry of the message, if the message is in the journal of a run. */
  entry?: Pick<NewEntry, 'runKey' | 'kind' | 'entryKey'>;
}

/** The change of a message when its attempt is settled. */
export interface Change {
  next: { kind: 'finished' } | { kind: 'waiting'; dueAtMs: Millis; retried: number; parkings?: number };
  events: LogEvent[];
  /** Present exactly when the message is dead. */
  deadLetter?: DeadLetter;
  /** Messages that are saved in the same transaction as this change (P3). These are callbacks. */
  follows?: NewMessage[];
  /** The end of the run of the message, because the message is dead or its response has the result of the run. */
  ending?: RunEnding;
  /**
   * The last step of the ended run, with all log events of the step. The step enters the journal as delivered and is
   * never sent.
   */
  lastStep?: NewMessage;
  /** The outcome of the failure callback, if the message is a failure callback. */
  failureCallback?: FailureCallbackState;
  /** The kind of the operator event that reports the dead message. The event is saved with the change. */
  operatorEventKind?: OperatorEventKind;
}

/** The data that the DLQ stores in addition to the message. */
export interface DeadLetter {
  failedAtMs: Millis;
  retried: number;
  /** 0 if there was no response. */
  responseStatus: number;
  responseHeader?: HeaderMap;
  responseBody: Uint8Array;
}

/** The decision about one attempt, ready to be saved in one transaction. */
export interface Settlement {
  key: MessageKey;
  projectId: ProjectId;
  claimToken: ClaimToken;
  /** As in `Claimed`. */
  isAlone?: true;
  change: Change;
  /** Saved instead of `change` when the message was cancelled during the attempt. */
  changeIfCancelRequested?: Change;
}

/** A checkpoint of a run: one transaction settles messages and adds other messages to the journal. */
export interface Checkpoint {
  done: Settlement[];
  follows: NewMessage[];
}
