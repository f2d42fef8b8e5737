/** Reads the story of each run directly from the rows of the database, without the code under test. */
import type { EntryKind, LogState, Message, MessageKey, Millis, RunLogState } from '../../src/engine/model.ts';
import type { LogEntry } from '../../src/engine/stores.ts';
import {
  CONTENT_FIELDS,
  type ContentRow,
  decodeMessage,
  logStateOf,
} from '../../src/store/operations/messages/rows.ts';
import { ENTRY_KIND, runStateOf } from '../../src/store/operations/runs/run-rows.ts';
import type { RunConfig, RunKey, RunState } from '../../src/workflow/model.ts';
import { textOf } from './workflow-library.ts';
import type { World } from './world.ts';

/** An entry of a journal, in order of its position. */
export interface StoredEntry {
  position: number;
  kind: EntryKind;
  entryKey: string;
  atMs: Millis;
  /** The message of the entry. A resumed run may share the message with the failed run. */
  message: Message;
}

/** A log entry of a run or of one of its messages. Entries with a lower `seq` were committed earlier. */
export interface RunEvent {
  seq: number;
  key: MessageKey;
  state: LogState | RunLogState;
  atMs: Millis;
}

export interface RunStory {
  key: RunKey;
  id: string;
  createdAtMs: Millis;
  state: RunState;
  response: string | undefined;
  config: RunConfig;
  /** The number of entries according to the row of the run. */
  entryCount: number;
  entries: StoredEntry[];
  entryByKey: Map<string, StoredEntry>;
  events: RunEvent[];
  /** The log entry of the end of the run. */
  end: RunEvent | undefined;
  failureKey: MessageKey | undefined;
}

interface RunRow {
  key: number;
  id: string;
  created_at_ms: number;
  state: number;
  config: string;
  entries: number;
  response: Uint8Array | null;
  failure_key: number | null;
}

interface JournalRow extends ContentRow {
  run_key: number;
  position: number;
  kind: number;
  entryKey: string;
  at_ms: number;
}

interface LogRow {
  run_key: number;
  seq: number;
  message_key: number;
  state: number;
  at_ms: number;
}

const KINDS = new Map(Object.entries(ENTRY_KIND).map(([kind, code]) => [code, kind as EntryKind]));
const ENDS: ReadonlySet<string> = new Set(['RUN_SUCCESS', 'RUN_FAILED', 'RUN_CANCELED']);

export async function runStories(world: World): Promise<RunStory[]> {
  const stories = await world.readAll(async (queries) => {
    const runs = await queries.query<RunRow>('select * from runs order by key');
    const journal = await queries.query<JournalRow>(
      `select ${CONTENT_FIELDS}, j.run_key, j.position, j.kind, j.entry_key as "entryKey", j.at_ms from journal j join contents c on c.key = j.key order by j.run_key, j.position`,
    );
    const logs = inOrder(world, await queries.query<LogRow>('select * from logs where run_key is not null'));
    const entriesByRun = Map.groupBy(journal, (row) => row.run_key);
    const logsByRun = Map.groupBy(logs, (row) => row.run_key);
    return runs.map((run) => storyOf(run, entriesByRun.get(run.key) ?? [], logsByRun.get(run.key) ?? []));
  });
  return stories.flat();
}

/** Replaces each `seq` by the position in commit order, since the numbers of two workers are not comparable. */
function inOrder<Row extends { seq: number }>(world: World, rows: readonly Row[]): Row[] {
  const places = new Map(world.logged.map(({ seq }, index) => [seq, index]));
  return rows.map((row) => ({ ...row, seq: places.get(row.seq) ?? -1 })).sort((a, b) => a.seq - b.seq);
}

function storyOf(run: RunRow, journal: readonly JournalRow[], logs: readonly LogRow[]): RunStory {
  const entries = journal.map((row): StoredEntry => {
    const kind = KINDS.get(row.kind);
    if (!kind) throw new Error(`unknown kind ${row.kind} in a journal`);
    const { position, entryKey, at_ms: atMs } = row;
    return { position, kind, entryKey, atMs, message: decodeMessage(row) };
  });
  const events = logs.map(({ seq, message_key: key, state, at_ms: atMs }) => ({
    seq,
    key,
    state: logStateOf(state),
    atMs,
  }));
  return {
    key: run.key,
    id: run.id,
    createdAtMs: run.created_at_ms,
    state: runStateOf(run.state),
    response: run.response === null ? undefined : textOf(run.response),
    config: JSON.parse(run.config) as RunConfig,
    entryCount: run.entries,
    entries,
    entryByKey: new Map(entries.map((entry) => [entry.entryKey, entry])),
    events,
    end: events.find(({ state }) => ENDS.has(state)),
    failureKey: run.failure_key ?? undefined,
  };
}

type LoggedRow = ContentRow & { seq: number; at_ms: number; state: number; next_delivery_at_ms: number | null };

/** The log entries of the messages of all runs, earliest first. */
export async function messageLogs(world: World): Promise<LogEntry[]> {
  const rows = await world.queryAll<LoggedRow>(
    `select ${CONTENT_FIELDS}, l.seq, l.at_ms, l.state, d.next_delivery_at_ms
     from logs l join contents c on c.key = l.message_key left join log_details d on d.seq = l.seq
     where l.run_key is not null and l.state <= 8`,
  );
  return inOrder(world, rows).map((row) => ({
    atMs: row.at_ms,
    state: logStateOf(row.state),
    message: decodeMessage(row),
    ...(row.next_delivery_at_ms !== null && { detail: { nextDeliveryTimeMs: row.next_delivery_at_ms } }),
  }));
}

/** The entries that were created for this run. Entries that a resumed run shares belong to the failed run. */
export function ownEntries({ key, entries }: RunStory, kind?: EntryKind): StoredEntry[] {
  return entries.filter(
    (entry) => (kind === undefined || entry.kind === kind) && entry.message.settings.run?.key === key,
  );
}

/** The entries that deliveries contain. */
export function shownEntries({ entries }: RunStory): StoredEntry[] {
  return entries.filter(({ kind }) => kind !== 'wait' && kind !== 'invoke');
}
