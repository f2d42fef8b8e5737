/**
 * The engine's words: a message, its attempt, the outcome of an attempt, and what is saved of it.
 * Names follow the table of words in docs/architecture.md.
 */
import type { HeaderMap, HttpMethod, MessageSettings, TraceContext } from '../protocol/options/settings.ts';
import type { EndState, EntryKind, FailureCallbackState, RunConfig, RunKey, RunState } from '../workflow/model.ts';
import type { OperatorEventKind } from './operator-events/kinds.ts';
import type { WaitState } from './wait-state.ts';

export type { EntryKind, FailureCallbackState };

/** Unix time or a span, in milliseconds. */
export type Millis = number;
/** Orders messages and is part of their id: the store's only key for a message. A safe integer. */
export type MessageKey = number;
/** What came of a request to attempt a message at once. `attempting`: it is under way. */
export type MadeDue = 'due' | 'attempting' | 'missing';
/** `msg_…`. */
export type MessageId = string;
/** Numbers the stores of an installation that has several; the first one is 1. */
export type CellId = number;
/**
 * How many numbers a cell has of each kind, so that what is numbered in one cell is new to every other. A thousand cells
 * are below 2^53. At 10,000 messages a second a range lasts for years.
 */
export const NUMBERS_OF_CELL = 2 ** 43;

/** The cell that has given out the number. */
export function cellOfNumber(number: number): CellId {
  return Math.ceil(number / NUMBERS_OF_CELL);
}

/** The one with the directory. */
export const FIRST_CELL: CellId = 1;

/** Internal number of a project; the wire shows its name. */
export type ProjectId = number;
/** Unique for ever among all claims of all workers (P6). A safe integer. */
export type ClaimToken = number;
/** Names one start of a worker: after a restart it has another. */
export type WorkerId = string;

/** Arguments of an operation in one project. */
export interface InProject {
  projectId: ProjectId;
}

/** The same, with the time at which it is done. */
export interface InProjectAt extends InProject {
  nowMs: Millis;
}

/** What was published. Never changes. */
export interface Message {
  key: MessageKey;
  id: MessageId;
  projectId: ProjectId;
  /** The accepted destination, verbatim. */
  url: string;
  /** Scheme, host and port of `url`, as `new URL(url).origin` writes it. The fair share is counted for it. */
  origin: string;
  method: HttpMethod;
  header: HeaderMap;
  body: Uint8Array;
  createdAtMs: Millis;
  /** As it was asked for, also if that was past. See `firstDueAtMs`. */
  notBeforeMs: Millis;
  callerIp?: string;
  settings: MessageSettings;
}

/**
 * From when on the message may go out. A date before its acceptance asks for no delay, and makes it due no longer than the others
 * that were accepted with it (contract M 12).
 */
export function firstDueAtMs({ createdAtMs, notBeforeMs }: Pick<Message, 'createdAtMs' | 'notBeforeMs'>): Millis {
  return Math.max(createdAtMs, notBeforeMs);
}

/** A message whose attempt belongs to one worker: from its accept or claim until its settle or release. */
export interface Claimed {
  message: Message;
  /** Retries already made; what `Upstash-Retried` says. */
  retried: number;
  /** How often its run was parked by the attempts just before; absent: never. */
  parkings?: number;
  claimToken: ClaimToken;
  /** Its place in the journal of its run; absent: it is in no journal. */
  journal?: JournalPlace;
  /** A call goes on with it: it is not sent. */
  isHeld?: true;
  /** What is sent in place of the message's own body: the journal of its run. */
  deliveredBody?: Uint8Array;
  /**
   * It is in no lane and of no run, so that settling it touches nothing that it shares with others. Absent: not known.
   */
  isAlone?: true;
  /** When the claim was made, and so when ACTIVE was logged: no later event of the message may be earlier. */
  claimedAtMs: Millis;
  /** How long its attempt took; absent before its end. */
  durationMs?: Millis;
  /** The trace with its attempt as parent, where attempts are spans: for its endpoint, and for what follows from it. */
  trace?: TraceContext;
}

/** Which claim of which message: all that it takes to give it back. */
export interface ClaimRef {
  key: MessageKey;
  projectId: ProjectId;
  claimToken: ClaimToken;
}

/** A message's place in the journal of its run. */
export interface JournalPlace {
  /** The delivered body has the entries up to this one. */
  position: number;
  /** Bytes of the delivered body; 0 when the endpoint must fetch it. */
  bytes: number;
}

/** Why there was no usable response. docs/errors.md is generated from these comments. */
export type UnreachableReason =
  /**
   * The host resolves to an address to which deliveries are not allowed.
   * Remedy: have the operator allow the host or its network with [`WAYPOST_ALLOW_DESTINATIONS`](settings.md); cloud metadata addresses are
   * only allowed by `all`.
   */
  | 'blocked'
  /**
   * The host name has no address, or no name server responded.
   * Remedy: resolve the name on the server's machine, inside its container if it has one: a name that your laptop resolves may be unknown
   * there.
   */
  | 'dns'
  /**
   * Nothing listens at the address, or it is unreachable.
   * Remedy: start the app, and check that it listens on an address that the server can reach: inside a container, 127.0.0.1 is the
   * container.
   */
  | 'refused'
  /**
   * The TLS handshake failed: the certificate has expired, is for another name or from an unknown authority, or the port does not use TLS.
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
   * The response is not valid HTTP/1.1, or its headers are too large. Defects that common clients accept, such as a folded header line, are
   * accepted.
   * Remedy: see the text for the defect, and check the port: another program than the app may respond there.
   */
  | 'malformed'
  /**
   * HTTP cannot express the request, so it is not retried.
   * Remedy: publish it without the header that the text names.
   */
  | 'unsendable';

/** What one HTTP request came to. */
export type Outcome =
  | {
      kind: 'answered';
      status: number;
      header: HeaderMap;
      body: Uint8Array;
      /** More came than is kept. */
      isCut?: true;
      /** Present when other answers may wait for this one's memory: to be called once the outcome is saved. */
      release?(): void;
    }
  /** `error` names the class of failure and never an internal address. */
  | { kind: 'unreachable'; reason: UnreachableReason; error: string }
  /** Our own shutdown cut the attempt: not the endpoint's failure, so not counted. */
  | { kind: 'interrupted' };

/** The states of messages that logs show. */
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

/** STEP_PARKED: only of a message of a run whose code has changed, which is no failed attempt (contract K 7). */
export type LogState = (typeof LOG_STATES)[number] | 'STEP_PARKED';

/** What happens to a run, in logs beside what happens to its messages. */
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

/** What an ERROR, RETRY, STEP_PARKED or delayed CREATED says beside its state. */
export interface LogDetail {
  error?: string;
  nextDeliveryTimeMs?: Millis;
  /** Present when there was an answer. */
  response?: { status: number; header: HeaderMap; body: Uint8Array };
}

/** One state change, appended in the transaction that makes it (P3). */
export interface LogEvent {
  atMs: Millis;
  state: LogState;
  detail?: LogDetail;
  /** Of the answer that delivered it; that of an error is in the detail. */
  responseStatus?: number;
}

/**
 * The state that a worker proposes for a new message. Only the transaction that saves it knows whether its lanes have
 * room.
 */
export type NewMessageState =
  | { kind: Extract<WaitState, 'due' | 'origin'>; dueAtMs: Millis }
  /** Written as already claimed by the worker that accepted it. */
  | { kind: 'claimed'; claimToken: ClaimToken; worker: WorkerId };

/** A message on its way into the store. */
export interface NewMessage {
  message: Message;
  /** As the worker proposes; a lane may hold the message back. */
  state: NewMessageState;
  /** Only of a message that is not sent. Absent: CREATED, and ACTIVE if the store finds that it goes out at once. */
  events?: LogEvent[];
  /** Reserved in the same transaction. When it is taken already, no message is made. */
  deduplication?: { hash: string; expiresAtMs: Millis };
  /** Its place in the journal of the run that it belongs to, taken in the same transaction. */
  entry?: NewEntry;
  /** The run that begins with it; `entry` is the run's first. */
  run?: NewRun;
  /** Nobody has published it: it follows from another message, or from a run. */
  isFollowUp?: true;
}

/** An entry for the journal of a run, made only once for each entry key of the run (P8). */
export interface NewEntry {
  runKey: RunKey;
  kind: EntryKind;
  /** Names what the entry records of the run, such as the result of step 3. Made by `workflow/steps.ts`. */
  entryKey: string;
  /** Bytes that it adds to a delivered body; 0 when deliveries do not show it. */
  bytes: number;
  /** A delivered body of more bytes is not sent: the endpoint fetches it. Absent: every body is sent. */
  lazyAboveBytes?: number;
  /** The version of the run that it was made for; absent: it fits any. */
  runVersion?: number;
}

/** A run on its way into the store; its key is that of its first message. */
export interface NewRun {
  id: string;
  url: string;
  createdAtMs: Millis;
  config: RunConfig;
  /** The second phase of a trigger: the active run of this id takes the message in place of its first one. */
  isBySdk?: true;
  /** The invocation in the parent's journal that waits for this run. */
  invoker?: NewRecord;
}

/** An entry that is no message: a wait or an invocation. Its content is kept like a message's, and is never sent. */
export interface NewRecord {
  message: Message;
  entry: NewEntry;
}

/** How a run ends, in one transaction with what follows from it. */
export interface RunEnding {
  projectId: ProjectId;
  runKey: RunKey;
  /** The version of the run that `follows` was made for. */
  runVersion: number;
  state: EndState;
  atMs: Millis;
  /** What the run returned; only with RUN_SUCCESS. */
  response?: Uint8Array;
  /** The message that reports the failure; only with RUN_FAILED. */
  failureCallbackKey?: MessageKey;
}

/** A message that follows from something else, before it has a key, an id and a state. */
export interface FollowUp extends Omit<Message, 'key' | 'id'> {
  /** Where it enters the journal of a run, if it does. */
  entry?: Pick<NewEntry, 'runKey' | 'kind' | 'entryKey'>;
}

/** What becomes of a message when its attempt is settled. */
export interface Change {
  next: { kind: 'finished' } | { kind: 'waiting'; dueAtMs: Millis; retried: number; parkings?: number };
  events: LogEvent[];
  /** Set exactly when the message is dead. */
  deadLetter?: DeadLetter;
  /** Messages that begin to exist with this change and never without it (P3): callbacks. */
  follows?: NewMessage[];
  /** The run that ends because its message has failed for good, or has brought its result. */
  ending?: RunEnding;
  /** The last step of the run that ends, with all its events: it enters the journal, delivered, and is never sent. */
  lastStep?: NewMessage;
  /** How the failure callback ended, when the message is one. */
  failureCallback?: FailureCallbackState;
  /** What the operator is told of the dead letter; the fact is saved with it. */
  toldAs?: OperatorEventKind;
}

/** What the DLQ keeps beside the message itself. */
export interface DeadLetter {
  failedAtMs: Millis;
  retried: number;
  /** 0 without an answer. */
  responseStatus: number;
  responseHeader?: HeaderMap;
  responseBody: Uint8Array;
}

/** The outcome of one attempt, decided and ready to be saved in one transaction. */
export interface Settlement {
  key: MessageKey;
  projectId: ProjectId;
  claimToken: ClaimToken;
  /** As in `Claimed`. */
  isAlone?: true;
  change: Change;
  /** Saved instead of `change` when a cancel was recorded while the attempt ran. */
  changeIfCancelRequested?: Change;
}

/** Messages of a run that end together in the middle of a call, and what enters the journal of the run with that. */
export interface Checkpoint {
  done: Settlement[];
  follows: NewMessage[];
}
