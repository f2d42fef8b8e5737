/** Encodes runs and the entries of their journals as rows, and decodes them. */
import type { EntryKind, FailureCallbackState, NewEntry, NewRecord, NewRun } from '../../../engine/model.ts';
import { DELIVERED_CALL_TYPES } from '../../../workflow/journal.ts';
import type { JournalEntry, Run, RunConfig, RunState } from '../../../workflow/model.ts';
import type { NewContentRow } from '../messages/columns.ts';
import { encodeContent, restoreCallback, withoutPrototype } from '../messages/content-rows.ts';

/** The numbers are stored: never change one, only add. */
export const ENTRY_KIND: Readonly<Record<EntryKind, number>> = {
  initial: 1,
  step: 2,
  plan: 3,
  toCallback: 4,
  fromCallback: 5,
  stepConfig: 6,
  wait: 7,
  invoke: 8,
};

/** The kinds that deliveries show, as an SQL list. */
export const SHOWN_KINDS = Object.entries(ENTRY_KIND)
  .flatMap(([kind, code]) => (DELIVERED_CALL_TYPES[kind as EntryKind] ? [code] : []))
  .join(', ');

/** Entries whose message is delivered with the journal, not with its own body. */
export function isDeliveredWithJournal(kind: number): boolean {
  return kind !== ENTRY_KIND.toCallback && kind !== ENTRY_KIND.fromCallback;
}

export const RUN_STATE: Readonly<Record<RunState, number>> = {
  RUN_STARTED: 1,
  RUN_SUCCESS: 2,
  RUN_FAILED: 3,
  RUN_CANCELED: 4,
};

/**
 * The state of a run that is being revived in several transactions (retry.ts). The first transaction sets this state, and
 * the last one changes it to RUN_STARTED. If the next transaction is late, the run becomes RUN_CANCELED. While the run is
 * being revived, it is in `ending_runs`, so none of its messages is claimed.
 */
export const REVIVING = 5;

export const FAILURE_STATE: Readonly<Record<FailureCallbackState, number>> = {
  inProgress: 1,
  success: 2,
  fail: 3,
  canceled: 4,
  none: 5,
};

const ENTRY_KINDS = byCode(ENTRY_KIND);
/** The API shows a run that is being revived as cancelled. */
const RUN_STATES = byCode(RUN_STATE).set(REVIVING, 'RUN_CANCELED');
const FAILURE_STATES = byCode(FAILURE_STATE);

export function entryKindOf(code: number): EntryKind {
  return nameOf('kind of entry', code, ENTRY_KINDS);
}

export function runStateOf(code: number): RunState {
  return nameOf('run state', code, RUN_STATES);
}

export function failureStateOf(code: number): FailureCallbackState {
  return nameOf('state of a failure callback', code, FAILURE_STATES);
}

function byCode<Name extends string>(codes: Readonly<Record<Name, number>>): Map<number, Name> {
  return new Map(Object.entries<number>(codes).map(([name, code]) => [code, name as Name]));
}

function nameOf<Name>(what: string, code: number, names: ReadonlyMap<number, Name>): Name {
  const name = names.get(code);
  if (name === undefined) throw new Error(`unknown ${what} ${code} in the store`);
  return name;
}

export interface StoredEntry {
  runKey: number;
  kind: number;
  entryKey: string;
  bytes: number;
  lazyAboveBytes: number | null;
  runVersion: number | null;
}

export interface StoredRecord {
  content: NewContentRow;
  key: number;
  createdAtMs: number;
  entry: StoredEntry;
}

export interface StoredRun {
  id: string;
  url: string;
  createdAtMs: number;
  config: string;
  isBySdk: boolean;
  invoker: StoredRecord | null;
}

export function encodeEntry({ runKey, kind, entryKey, bytes, lazyAboveBytes, runVersion }: NewEntry): StoredEntry {
  return {
    runKey,
    kind: ENTRY_KIND[kind],
    entryKey,
    bytes,
    lazyAboveBytes: lazyAboveBytes ?? null,
    runVersion: runVersion ?? null,
  };
}

export function encodeRun({ id, url, createdAtMs, config, isBySdk, invoker }: NewRun): StoredRun {
  return {
    id,
    url,
    createdAtMs,
    config: JSON.stringify(config),
    isBySdk: isBySdk ?? false,
    invoker: invoker ? encodeRecord(invoker) : null,
  };
}

export function encodeRecord({ message, entry }: NewRecord): StoredRecord {
  const { key, createdAtMs } = message;
  return { content: encodeContent(message), key, createdAtMs, entry: encodeEntry(entry) };
}

export interface RunRow {
  key: number;
  project_id: number;
  id: string;
  url: string;
  created_at_ms: number;
  state: number;
  version: number;
  config: string;
  entries: number;
}

export const RUN_FIELDS = 'r.key, r.project_id, r.id, r.url, r.created_at_ms, r.state, r.version, r.config, r.entries';

/** A run with the values that are stored in other tables. */
export interface WholeRunRow extends RunRow {
  message_id: string;
  caller_ip: string | null;
  invokers: number[];
}

export function decodeRun(row: WholeRunRow): Run {
  const run: Run = {
    key: row.key,
    projectId: row.project_id,
    id: row.id,
    url: row.url,
    createdAtMs: row.created_at_ms,
    state: runStateOf(row.state),
    version: row.version,
    config: decodeConfig(row.config),
    entries: row.entries,
    messageId: row.message_id,
    invokers: row.invokers,
  };
  if (row.caller_ip !== null) run.callerIp = row.caller_ip;
  return run;
}

export function decodeConfig(text: string): RunConfig {
  const config = JSON.parse(text) as RunConfig;
  config.header = withoutPrototype(config.header);
  if (config.failureCallback) restoreCallback(config.failureCallback);
  return config;
}

export interface JournalRow {
  position: number;
  id: string;
  kind: number;
  body: Uint8Array | null;
}

export function decodeJournalEntry({ position, id, kind, body }: JournalRow): JournalEntry {
  return {
    position,
    messageId: id,
    callType: DELIVERED_CALL_TYPES[entryKindOf(kind)] ?? 'step',
    body: body ?? new Uint8Array(0),
  };
}
