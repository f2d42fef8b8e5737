/** Decodes the rows of the lists of runs and of their events. */
import type { LogDetail, Message } from '../../../engine/model.ts';
import type { RunEvent } from '../../../engine/runs/logs/log-store.ts';
import { dlqIdOf } from '../../../protocol/cursor.ts';
import type {
  DeliveryProgress,
  Failure,
  FailureFunction,
  HistoryEntry,
  LoggedRun,
  RunHistory,
} from '../../../workflow/history.ts';
import type { PageRows, Position } from '../lists/page.ts';
import {
  anyLogStateOf,
  type ContentRow,
  codeOfLogState,
  type DetailRow,
  decodeDetail,
  decodeMessage,
  logStateOf,
} from '../messages/rows.ts';
import type { RecordRow } from '../runs/children.ts';
import type { InvokerRow, LoggedRunRow, ResponseRow } from '../runs/logged-runs.ts';
import { decodeConfig, entryKindOf, failureStateOf, runStateOf } from '../runs/run-rows.ts';

/** State codes from this one on are of runs. Events of a run refer to its first message (migrations/001-baseline.ts). */
export const RUN_STATES_FROM = codeOfLogState('RUN_STARTED');

export interface RunLogRow extends Position {
  run_key: number;
  message_key: number;
  state: number;
}

/** Whether the event is of the run itself, not of one of its messages. */
function isOfRun({ state }: RunLogRow): boolean {
  return state >= RUN_STATES_FROM;
}

export interface RunLogRows extends PageRows<RunLogRow> {
  contents: ContentRow[];
  details: (DetailRow & { seq: number })[];
  runs: LoggedRunRow[];
  responses: ResponseRow[];
  invokers: InvokerRow[];
  /** For each result on the page: the entry key of its wait or invocation. */
  entryKeyByKey: Map<number, string>;
  /** The waits and invocations whose results are on the page, and the first messages of the invoked runs. */
  records: RecordRow[];
  children: ContentRow[];
  bytes: number;
}

export interface JournalRow extends ContentRow {
  run_key: number;
  position: number;
  kind: number;
  entryKey: string;
}

export interface PendingRow {
  key: number;
  due_at_ms: number;
  claimed_at_ms: number | null;
}

export interface DeliveryEventRow {
  seq: number;
  at_ms: number;
  message_key: number;
  state: number;
}

export interface HistoryRows extends PageRows<Position> {
  runs: LoggedRunRow[];
  journal: JournalRow[];
  pending: PendingRow[];
  /** Failures, parkings and ends of messages, oldest first. */
  deliveryEvents: DeliveryEventRow[];
  details: (DetailRow & { seq: number })[];
  failureCalls: ContentRow[];
  responses: ResponseRow[];
  invokers: InvokerRow[];
  children: ContentRow[];
  bytes: number;
}

/** Decodes events. Events of a dropped run that have no stored message are skipped. */
export function decodeRunEvents(rows: RunLogRows): RunEvent[] {
  const messageByKey = decodeByKey(rows.contents);
  const childByKey = decodeByKey(rows.children);
  const runByKey = decodeRuns(rows);
  const detailBySeq = new Map(rows.details.map((row) => [row.seq, decodeDetail(row)]));
  const recordByEntry = new Map(
    rows.records.map((row) => [nameOfEntry(row.run_key, row.entryKey), decodeMessage(row)]),
  );
  return rows.rows.flatMap((row): RunEvent | [] => {
    const message = messageByKey.get(row.message_key);
    const known = runByKey.get(row.run_key);
    // The log of a failure callback may outlive the run.
    const run = known ? runOfEvent(known, row) : message?.settings.run;
    if (!run) return [];
    const event: RunEvent = { atMs: row.timeMs, state: anyLogStateOf(row.state), run };
    if (isOfRun(row)) return event;
    if (!message) return [];
    event.message = message;
    const entryKey = rows.entryKeyByKey.get(row.message_key);
    const record = entryKey === undefined ? undefined : recordByEntry.get(nameOfEntry(row.run_key, entryKey));
    const child = record?.settings.invoke && childByKey.get(record.settings.invoke.runKey);
    const detail = detailBySeq.get(row.n);
    if (record) event.record = record;
    if (child) event.child = child;
    if (detail) event.detail = detail;
    return event;
  });
}

function nameOfEntry(runKey: number, entryKey: string): string {
  return `${runKey} ${entryKey}`;
}

/** The run as `row` shows it: a start event has the caller or invoker, an end event has the result. */
function runOfEvent({ callerIp, invoker, response, dlqId, ...run }: LoggedRun, row: RunLogRow): RunEvent['run'] {
  const state = anyLogStateOf(row.state);
  const shown: RunEvent['run'] = run;
  if (state === 'RUN_STARTED') {
    if (callerIp !== undefined) shown.callerIp = callerIp;
    if (invoker) shown.invoker = invoker;
  }
  if (state === 'RUN_SUCCESS' && response) shown.response = response;
  if (state === 'RUN_FAILED' && dlqId !== undefined) shown.dlqId = dlqId;
  return shown;
}

/** Decodes runs in the order of the page. */
export function decodeHistories(rows: HistoryRows): RunHistory[] {
  const runByKey = decodeRuns(rows);
  const progressByKey = decodeProgress(rows);
  const childByKey = decodeByKey(rows.children);
  const callByKey = decodeByKey(rows.failureCalls);
  const entriesByRun = Map.groupBy(rows.journal, ({ run_key }) => run_key);
  const rowByKey = new Map(rows.runs.map((row) => [row.key, row]));

  const entryOf = (row: JournalRow): HistoryEntry => {
    const { key, position, kind, entryKey } = row;
    const message = decodeMessage(row);
    const progress = progressByKey.get(key) ?? { failures: [] };
    const entry: HistoryEntry = { key, position, kind: entryKindOf(kind), entryKey, message, ...progress };
    const child = message.settings.invoke && childByKey.get(message.settings.invoke.runKey);
    if (child) entry.child = child;
    return entry;
  };

  return rows.rows.flatMap(({ n }): RunHistory | [] => {
    const run = runByKey.get(n);
    if (!run) return [];
    const history: RunHistory = { run, entries: (entriesByRun.get(n) ?? []).map(entryOf) };
    const failureFunction = failureFunctionOf(rowByKey.get(n), callByKey, progressByKey);
    if (failureFunction) history.failureFunction = failureFunction;
    return history;
  });
}

function failureFunctionOf(
  row: LoggedRunRow | undefined,
  callByKey: ReadonlyMap<number, Message>,
  progressByKey: ReadonlyMap<number, DeliveryProgress>,
): FailureFunction | undefined {
  if (row?.failure_key == null || row.failure_state === null) return undefined;
  const message = callByKey.get(row.failure_key);
  const progress = progressByKey.get(row.failure_key) ?? { failures: [] };
  return message && { state: failureStateOf(row.failure_state), message, ...progress };
}

/** The progress of each message that is unfinished or has log entries. */
function decodeProgress(rows: HistoryRows): Map<number, DeliveryProgress> {
  const progressByKey = new Map<number, DeliveryProgress>();
  const detailBySeq = new Map(rows.details.map((row) => [row.seq, row]));
  for (const row of rows.deliveryEvents)
    noteEvent(progressFor(progressByKey, row.message_key), row, detailBySeq.get(row.seq));
  for (const { key, due_at_ms, claimed_at_ms } of rows.pending) {
    const progress = progressFor(progressByKey, key);
    progress.pending = { dueAtMs: due_at_ms, isInFlight: claimed_at_ms !== null };
    // A message may be unfinished again, such as a failure callback that is sent again.
    delete progress.end;
  }
  return progressByKey;
}

function progressFor(progressByKey: Map<number, DeliveryProgress>, key: number): DeliveryProgress {
  const progress = progressByKey.get(key) ?? { failures: [] };
  progressByKey.set(key, progress);
  return progress;
}

function noteEvent(progress: DeliveryProgress, { at_ms, state }: DeliveryEventRow, row: DetailRow | undefined): void {
  const detail = row && decodeDetail(row);
  switch (logStateOf(state)) {
    case 'ERROR':
      progress.failures.push(failureOf(at_ms, detail));
      delete progress.parked;
      return;
    case 'STEP_PARKED':
      progress.parked = failureOf(at_ms, detail);
      return;
    case 'DELIVERED':
      progress.end = 'delivered';
      if (detail?.response) progress.response = detail.response;
      return;
    case 'FAILED':
      progress.end = 'failed';
      return;
    case 'CANCELED':
      progress.end = 'canceled';
      return;
    default:
      return;
  }
}

function failureOf(atMs: number, { error = '', response }: LogDetail = {}): Failure {
  return response ? { atMs, error, response } : { atMs, error };
}

function decodeRuns({ runs, responses, invokers }: Pick<HistoryRows, 'runs' | 'responses' | 'invokers'>) {
  const responseByKey = new Map(responses.map(({ key, response }) => [key, response]));
  const runByKey = new Map<number, LoggedRun>();
  for (const row of runs) runByKey.set(row.key, decodeRun(row, responseByKey.get(row.key) ?? null));
  for (const invoker of invokers) noteInvoker(runByKey.get(invoker.run_key), invoker);
  return runByKey;
}

/** The first run that waits for a run is the one that invoked it. */
function noteInvoker(run: LoggedRun | undefined, { id, url, created_at_ms }: InvokerRow): void {
  if (run) run.invoker ??= { id, url, createdAtMs: created_at_ms };
}

function decodeRun(row: LoggedRunRow, response: Uint8Array | null): LoggedRun {
  const run: LoggedRun = {
    key: row.key,
    id: row.id,
    url: row.url,
    createdAtMs: row.created_at_ms,
    state: runStateOf(row.state),
    config: decodeConfig(row.config),
  };
  if (row.completed_at_ms !== null) run.completedAtMs = row.completed_at_ms;
  if (response !== null) run.response = response;
  if (row.failed_at_ms !== null && row.dead_key !== null) run.dlqId = dlqIdOf(row.failed_at_ms, row.dead_key);
  if (row.caller_ip !== null) run.callerIp = row.caller_ip;
  return run;
}

function decodeByKey(rows: readonly ContentRow[]): Map<number, Message> {
  return new Map(rows.map((row) => [row.key, decodeMessage(row)]));
}
