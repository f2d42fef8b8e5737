/**
 * Encodes the engine's values as rows, and decodes them. Encoding runs in the caller's thread and returns plain arrays,
 * which the store's thread only binds. Decoding runs in the caller's thread too.
 */
import type {
  Change,
  DeadLetter,
  LogDetail,
  LogEvent,
  LogState,
  Message,
  MessageId,
  NewMessage,
  ProjectId,
  RunLogState,
  Settlement,
} from '../../../engine/model.ts';
import type { OperatorEventKind } from '../../../engine/operator-events/kinds.ts';
import type { StoreLimits } from '../../../engine/stores.ts';
import type { FlowControl, HttpMethod } from '../../../protocol/options/settings.ts';
import type { SqlValue } from '../../driver.ts';
import { WAIT_STATE } from '../lanes/wait-states.ts';
import { encodeEnding, type StoredEnding } from '../runs/ending-rows.ts';
import { encodeEntry, encodeRun, FAILURE_STATE, type StoredEntry, type StoredRun } from '../runs/run-rows.ts';
import { fieldsOf, namesOf, type RowOf } from '../table.ts';
import {
  CONTENT_COLUMNS,
  MESSAGE_AT,
  type NewContentRow,
  type NewMessageRow,
  type WholeContentRow,
} from './columns.ts';
import { decodeHeader, decodeSettings, encodeBytes, encodeContent, encodeHeader } from './content-rows.ts';

/** The numbers are stored: never change one, only add. States before RUN_STARTED are of messages. */
const LOG_STATE_CODES: Record<LogState | RunLogState, number> = {
  STEP_PARKED: 0,
  CREATED: 1,
  ACTIVE: 2,
  DELIVERED: 3,
  ERROR: 4,
  RETRY: 5,
  FAILED: 6,
  CANCEL_REQUESTED: 7,
  CANCELED: 8,
  RUN_STARTED: 9,
  RUN_SUCCESS: 10,
  RUN_FAILED: 11,
  RUN_CANCELED: 12,
  WAITER_ADDED: 13,
  INVOKED: 14,
};

const LOG_STATE_BY_CODE = new Map(
  Object.entries(LOG_STATE_CODES).map(([state, code]) => [code, state as LogState | RunLogState]),
);

export function codeOfLogState(state: LogState | RunLogState): number {
  return LOG_STATE_CODES[state];
}

/** The state of an event of a message. */
export function logStateOf(code: number): LogState {
  return anyLogStateOf(code) as LogState;
}

/** The state of an event of a message or of a run. */
export function anyLogStateOf(code: number): LogState | RunLogState {
  const state = LOG_STATE_BY_CODE.get(code);
  if (state === undefined) throw new Error(`unknown log state ${code} in the store`);
  return state;
}

const DETAIL = [
  ['error', 'text?'],
  ['next_delivery_at_ms', 'number?'],
  ['response_status', 'number?'],
  ['response_header', 'text?'],
  ['response_body', 'bytes?'],
] as const;

const DEAD_LETTER = [
  ['failed_at_ms', 'number'],
  ['retried', 'number'],
  ['response_status', 'number'],
  ['response_header', 'text?'],
  ['response_body', 'bytes?'],
] as const;

export const DETAIL_COLUMNS = namesOf(DETAIL);
export const DEAD_LETTER_COLUMNS = namesOf(DEAD_LETTER);

export type DetailRow = RowOf<typeof DETAIL>;
export type DeadLetterRow = RowOf<typeof DEAD_LETTER>;

/** Time, state code, the values of `DETAIL_COLUMNS` where there are any, and the status of a delivery. */
export type StoredEvent = [atMs: number, state: number, detail?: SqlValue[] | null, responseStatus?: number];

export interface StoredNewMessage {
  message: NewMessageRow;
  content: NewContentRow;
  /** The events except ACTIVE, which is written when the message is claimed. */
  events: StoredEvent[];
  deduplication?: { hash: string; expiresAtMs: number };
  queueName?: string;
  flow?: FlowControl;
  entry?: StoredEntry;
  run?: StoredRun;
}

export interface StoredChange {
  /** Absent if the message is finished. */
  waiting?: { dueAtMs: number; retried: number; parkings: number | null };
  events: StoredEvent[];
  /** Values of `DEAD_LETTER_COLUMNS`. */
  deadLetter?: SqlValue[];
  follows?: StoredNewMessage[];
  ending?: StoredEnding;
  lastStep?: StoredNewMessage;
  /** Code of the failure callback's state, if this message is a failure callback. */
  failureState?: number;
  operatorEventKind?: OperatorEventKind;
}

export interface StoredSettlement {
  key: number;
  projectId: number;
  claimToken: number;
  isAlone?: true;
  change: StoredChange;
  changeIfCancelRequested?: StoredChange;
}

const ONLY_FOR_FILTERS = [
  'path',
  'topic_name',
  'queue_name',
  'schedule_id',
  'flow_control_key',
  'labels',
  'replay_of',
] as const;

/** A row of `CONTENT_COLUMNS` that was read, without the columns that only filters need. */
export type ContentRow = Omit<WholeContentRow, (typeof ONLY_FOR_FILTERS)[number]>;

/** The select list of a `ContentRow` from `contents c`. */
export const CONTENT_FIELDS = fieldsOf(
  'c',
  CONTENT_COLUMNS.filter((name) => !ONLY_FOR_FILTERS.some((filter) => filter === name)),
);

export function encodeNewMessage({ message, state, events, deduplication, entry, run }: NewMessage): StoredNewMessage {
  const { key, projectId, origin, settings } = message;
  const claimed = state.kind === 'claimed';
  const { createdAtMs } = message;
  const stored: StoredNewMessage = {
    message: [
      key,
      projectId,
      origin,
      claimed ? createdAtMs : state.dueAtMs,
      message.body.byteLength,
      0,
      claimed ? createdAtMs : null,
      claimed ? state.claimToken : null,
      claimed ? state.worker : null,
      claimed ? WAIT_STATE.due : WAIT_STATE[state.kind],
      null,
      null,
      null,
      settings.flowControl?.key ?? null,
      settings.run?.key ?? null,
      null,
    ],
    content: encodeContent(message),
    events: events ? events.map(encodeEvent) : [createdEvent(message)],
  };
  if (deduplication) stored.deduplication = deduplication;
  if (settings.queueName !== undefined) stored.queueName = settings.queueName;
  if (settings.flowControl !== undefined) stored.flow = settings.flowControl;
  if (entry) stored.entry = encodeEntry(entry);
  if (run) stored.run = encodeRun(run);
  return stored;
}

/** The CREATED event, with the planned time if the message is delayed (contract M 6.3). */
function createdEvent({ createdAtMs: atMs, notBeforeMs }: Message): StoredEvent {
  const detail = notBeforeMs > atMs ? { nextDeliveryTimeMs: notBeforeMs } : undefined;
  return encodeEvent({ atMs, state: 'CREATED', ...(detail && { detail }) });
}

export function encodeSettlement(settlement: Settlement): StoredSettlement {
  const { key, projectId, claimToken, isAlone, change, changeIfCancelRequested } = settlement;
  const stored: StoredSettlement = { key, projectId, claimToken, change: encodeChange(change) };
  if (isAlone) stored.isAlone = true;
  if (changeIfCancelRequested) stored.changeIfCancelRequested = encodeChange(changeIfCancelRequested);
  return stored;
}

function encodeChange(change: Change): StoredChange {
  const { next, events, deadLetter, follows, ending, lastStep, failureCallback, operatorEventKind } = change;
  const stored: StoredChange = { events: events.map(encodeEvent) };
  if (next.kind === 'waiting') {
    const { dueAtMs, retried, parkings = null } = next;
    stored.waiting = { dueAtMs, retried, parkings };
  }
  if (deadLetter) stored.deadLetter = encodeDeadLetter(deadLetter);
  if (follows) stored.follows = follows.map(encodeNewMessage);
  if (ending) stored.ending = encodeEnding(ending);
  if (lastStep) stored.lastStep = encodeNewMessage(lastStep);
  if (failureCallback) stored.failureState = FAILURE_STATE[failureCallback];
  if (operatorEventKind) stored.operatorEventKind = operatorEventKind;
  return stored;
}

function encodeEvent({ atMs, state, detail, responseStatus }: LogEvent): StoredEvent {
  const code = LOG_STATE_CODES[state];
  if (responseStatus !== undefined) return [atMs, code, null, responseStatus];
  if (!detail) return [atMs, code];
  const { error, nextDeliveryTimeMs, response } = detail;
  return [
    atMs,
    code,
    [
      error ?? null,
      nextDeliveryTimeMs ?? null,
      response?.status ?? null,
      response ? encodeHeader(response.header) : null,
      response ? encodeBytes(response.body) : null,
    ],
  ];
}

function encodeDeadLetter(deadLetter: DeadLetter): SqlValue[] {
  return [
    deadLetter.failedAtMs,
    deadLetter.retried,
    deadLetter.responseStatus,
    deadLetter.responseHeader ? JSON.stringify(deadLetter.responseHeader) : null,
    encodeBytes(deadLetter.responseBody),
  ];
}

export function decodeMessage(row: ContentRow): Message {
  const message: Message = {
    key: row.key,
    id: row.id as MessageId,
    projectId: row.project_id,
    url: row.url,
    origin: row.origin,
    method: row.method as HttpMethod,
    header: decodeHeader(row.header),
    body: row.body ?? new Uint8Array(0),
    createdAtMs: row.created_at_ms,
    notBeforeMs: row.not_before_ms,
    settings: decodeSettings(row.settings),
  };
  if (row.caller_ip !== null) message.callerIp = row.caller_ip;
  return message;
}

export function decodeDetail(row: DetailRow): LogDetail {
  const detail: LogDetail = {};
  if (row.error !== null) detail.error = row.error;
  if (row.next_delivery_at_ms !== null) detail.nextDeliveryTimeMs = row.next_delivery_at_ms;
  if (row.response_status !== null) {
    detail.response = {
      status: row.response_status,
      header: decodeHeader(row.response_header),
      body: row.response_body ?? new Uint8Array(0),
    };
  }
  return detail;
}

export function decodeDeadLetter(row: DeadLetterRow): DeadLetter {
  const deadLetter: DeadLetter = {
    failedAtMs: row.failed_at_ms,
    retried: row.retried,
    responseStatus: row.response_status,
    responseBody: row.response_body ?? new Uint8Array(0),
  };
  if (row.response_header !== null) deadLetter.responseHeader = decodeHeader(row.response_header);
  return deadLetter;
}

export function weightOf(messages: readonly { content: readonly unknown[] }[]): { rows: number; bytes: number } {
  return { rows: messages.length, bytes: messages.reduce((sum, { content }) => sum + bytesOf(content.at(-1)), 0) };
}

/** The size of `value` if it is a body, otherwise 0. */
export function bytesOf(value: unknown): number {
  return value instanceof Uint8Array ? value.byteLength : 0;
}

/** The projects whose lanes, runs, deduplication ids or budgets `messages` use. */
export function projectsSharedBy(messages: readonly StoredNewMessage[], limits: StoreLimits): ProjectId[] {
  const isLimited = limits.parallelismMax > 0 || limits.messagesPerDayMax > 0;
  return messages.filter((message) => isLimited || sharesSomething(message)).map(projectOf);
}

function sharesSomething({ deduplication, queueName, flow, message }: StoredNewMessage): boolean {
  if (deduplication !== undefined || queueName !== undefined || flow !== undefined) return true;
  // Whether the message starts a run or is an entry of a journal.
  return message[MESSAGE_AT.run_key] !== null;
}

export function projectOf({ message }: Pick<StoredNewMessage, 'message'>): ProjectId {
  return message[MESSAGE_AT.project_id];
}
