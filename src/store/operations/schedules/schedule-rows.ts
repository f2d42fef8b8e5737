/** Encodes schedules as rows and decodes them, in the caller's thread like all other rows (rows.ts). */
import type { OperatorFact } from '../../../engine/operator-events/model.ts';
import type {
  Schedule,
  ScheduleChange,
  SchedulePlan,
  ScheduleState,
  TriggeredState,
} from '../../../engine/schedules/schedules.ts';
import type { ScheduleView } from '../../../engine/schedules/store.ts';
import type { HttpMethod, ScheduleCatchUp, ScheduleOverlap } from '../../../protocol/options/settings.ts';
import type { SavedHeaders } from '../../../protocol/options/trigger-options.ts';
import type { SqlValue } from '../../driver.ts';
import { decodeHeader, decodeSettings, encodeBytes, encodeHeader } from '../messages/content-rows.ts';
import { encodeNewMessage, type StoredNewMessage } from '../messages/rows.ts';
import { namesOf, type RowOf } from '../table.ts';

const STATE = [
  ['version', 'number'],
  ['paused', 'number'],
  ['next_at_ms', 'number'],
  ['passed_until_ms', 'number?'],
  ['last_at_ms', 'number?'],
  ['last_message_key', 'number?'],
  ['last_message_count', 'number?'],
  ['error', 'text?'],
] as const;

const HEAD = [
  ['key', 'number'],
  ['project_id', 'number'],
  ['id', 'text'],
  ['created_at_ms', 'number'],
] as const;

/** The body comes last, so that reading the columns before it never walks its overflow pages. */
const PLAN = [
  ['key', 'number'],
  ['cron', 'text'],
  ['destination', 'text'],
  ['is_group', 'number'],
  ['method', 'text'],
  ['header', 'text?'],
  ['settings', 'text'],
  ['delay_ms', 'number?'],
  ['caller_ip', 'text?'],
  ['catch_up', 'text?'],
  ['overlap', 'text?'],
  ['kept', 'text?'],
  ['body', 'bytes?'],
] as const;

export const STATE_COLUMNS = namesOf(STATE);
export const SCHEDULE_COLUMNS = [...namesOf(HEAD), 'bytes', ...STATE_COLUMNS];
export const PLAN_COLUMNS = namesOf(PLAN);

/** A schedule as it passes to the store's thread. */
export interface StoredSchedule {
  key: number;
  projectId: number;
  id: string;
  /** Values of `SCHEDULE_COLUMNS`. */
  row: SqlValue[];
  /** Values of `PLAN_COLUMNS`. */
  plan: SqlValue[];
}

export interface StoredScheduleChange {
  key: number;
  fromVersion: number;
  /** Values of `STATE_COLUMNS`. */
  state: SqlValue[];
  messages: StoredNewMessage[];
  fact?: OperatorFact;
}

/** A row of `SCHEDULE_COLUMNS` and `PLAN_COLUMNS` that was read. */
export type ScheduleRow = RowOf<typeof HEAD> & RowOf<typeof STATE> & RowOf<typeof PLAN>;

export interface TriggeredRow {
  schedule_key: number;
  message_id: string;
  unfinished: number;
  delivered: number;
}

export interface ScheduleViewRows {
  rows: ScheduleRow[];
  /** The messages of the last triggers of these schedules, by schedule, then by creation. */
  lastMessages: TriggeredRow[];
}

export function encodeSchedule({ key, projectId, id, createdAtMs, plan, state }: Schedule): StoredSchedule {
  const { destination, body } = plan;
  const header = encodeHeader(plan.header);
  const settings = JSON.stringify(plan.settings);
  const kept = plan.kept === undefined ? null : JSON.stringify(plan.kept);
  // The memory that a trigger needs.
  const bytes = body.byteLength + (header?.length ?? 0) + settings.length + (kept?.length ?? 0);
  return {
    key,
    projectId,
    id,
    row: [key, projectId, id, createdAtMs, bytes, ...encodeState(state)],
    plan: [
      key,
      plan.cron,
      destination.kind === 'url' ? destination.url : destination.name,
      destination.kind === 'group' ? 1 : 0,
      plan.method,
      header,
      settings,
      plan.delayMs ?? null,
      plan.callerIp ?? null,
      plan.catchUp ?? null,
      plan.overlap ?? null,
      kept,
      encodeBytes(body),
    ],
  };
}

export function encodeScheduleChange({ state, messages, ...change }: ScheduleChange): StoredScheduleChange {
  return { ...change, state: encodeState(state), messages: messages.map(encodeNewMessage) };
}

function encodeState(state: ScheduleState): SqlValue[] {
  const { version, isPaused, nextAtMs, passedUntilMs, lastTrigger, error } = state;
  return [
    version,
    isPaused ? 1 : 0,
    nextAtMs,
    passedUntilMs ?? null,
    lastTrigger?.atMs ?? null,
    lastTrigger?.firstKey ?? null,
    lastTrigger?.messages ?? null,
    error ?? null,
  ];
}

export function decodeSchedule(row: ScheduleRow): Schedule {
  return {
    key: row.key,
    projectId: row.project_id,
    id: row.id,
    createdAtMs: row.created_at_ms,
    plan: decodePlan(row),
    state: decodeState(row),
  };
}

function decodePlan(row: ScheduleRow): SchedulePlan {
  const plan: SchedulePlan = {
    cron: row.cron,
    destination: row.is_group === 1 ? { kind: 'group', name: row.destination } : { kind: 'url', url: row.destination },
    method: row.method as HttpMethod,
    header: decodeHeader(row.header),
    body: row.body ?? new Uint8Array(0),
    settings: decodeSettings(row.settings),
  };
  if (row.delay_ms !== null) plan.delayMs = row.delay_ms;
  if (row.caller_ip !== null) plan.callerIp = row.caller_ip;
  if (row.catch_up !== null) plan.catchUp = row.catch_up as ScheduleCatchUp;
  if (row.overlap !== null) plan.overlap = row.overlap as ScheduleOverlap;
  if (row.kept !== null) plan.kept = JSON.parse(row.kept) as SavedHeaders;
  return plan;
}

function decodeState(row: ScheduleRow): ScheduleState {
  const state: ScheduleState = { version: row.version, isPaused: row.paused === 1, nextAtMs: row.next_at_ms };
  if (row.passed_until_ms !== null) state.passedUntilMs = row.passed_until_ms;
  if (row.last_at_ms !== null) {
    state.lastTrigger = {
      atMs: row.last_at_ms,
      firstKey: row.last_message_key ?? 0,
      messages: row.last_message_count ?? 0,
    };
  }
  if (row.error !== null) state.error = row.error;
  return state;
}

export function decodeScheduleViews({ rows, lastMessages }: ScheduleViewRows): ScheduleView[] {
  const messagesByKey = Map.groupBy(lastMessages, (message) => message.schedule_key);
  return rows.map((row) => ({
    schedule: decodeSchedule(row),
    lastMessages: (messagesByKey.get(row.key) ?? []).map((message) => ({
      messageId: message.message_id,
      state: triggeredStateOf(message),
    })),
  }));
}

function triggeredStateOf({ unfinished, delivered }: TriggeredRow): TriggeredState {
  if (unfinished === 1) return 'unfinished';
  return delivered === 1 ? 'delivered' : 'failed';
}
