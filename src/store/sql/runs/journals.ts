/**
 * How do messages enter the journals of their runs: each slot once, in the order in which they come, and only while the run
 * is active (P8)? One of these for a batch of commands: what comes first in the batch counts for what follows.
 */
import type { JournalPlace, MessageId, RunLogState } from '../../../engine/model.ts';
import type { SqlValue, Transaction } from '../../driver.ts';
import type { WriteContext } from '../log-writer.ts';
import { CONTENT_AT, CONTENT_COLUMNS, codeOfLogState, MESSAGE_AT, type StoredNewMessage } from '../rows.ts';
import {
  ENTRY_KIND,
  FIRST_VERSION,
  isDeliveredWithJournal,
  RUN_FIELDS,
  RUN_STATE,
  type RunRow,
  type StoredEntry,
  type StoredRecord,
} from './run-rows.ts';

/** Why a message, and with it all of its publish, is refused. */
export type RunRefusal = 'runOver' | 'runChanged' | { journalFull: number };

/** What is looked at of a message before it is saved. */
export type ForRun = Pick<StoredNewMessage, 'message' | 'entry' | 'run'>;

/** What stands for a message already. */
export interface Taken {
  messageId: MessageId;
  run: { id: string; createdAtMs: number } | null;
}

interface KnownRun extends RunRow {
  journal_bytes: number;
  /** Id of its first message. */
  message_id: string;
  isNew: boolean;
  isChanged: boolean;
}

const KNOWN_FIELDS = `${RUN_FIELDS}, r.journal_bytes, c.id as message_id`;
const KNOWN_FROM =
  'from runs r join journal j on j.run_key = r.key and j.position = 0 join contents c on c.key = j.key';

export class Journals {
  readonly #context: WriteContext;
  readonly #bytesMax: number;
  readonly #runs = new Map<number, KnownRun>();
  readonly #activeById = new Map<string, KnownRun>();
  /** Ids of the messages that have a slot, as far as it was asked for. */
  readonly #slots = new Map<string, string>();
  readonly #entries: SqlValue[][] = [];
  readonly #records: StoredRecord[] = [];
  readonly #invocations: SqlValue[][] = [];
  readonly #events: { projectId: number; runKey: number; state: RunLogState; atMs: number }[] = [];
  /** Positions that were written already and name another content from now on. */
  readonly #replaced: [runKey: number, key: number][] = [];

  private constructor(context: WriteContext, bytesMax: number) {
    this.#context = context;
    this.#bytesMax = bytesMax;
  }

  /** Knows the runs and slots that `messages` are for; `undefined` when they are for none, and nothing was asked. */
  static async load(
    context: WriteContext,
    messages: readonly ForRun[],
    bytesMax: number,
  ): Promise<Journals | undefined> {
    const inRuns = messages.filter(({ entry }) => entry !== undefined);
    if (inRuns.length === 0) return undefined;
    const journals = new Journals(context, bytesMax);
    await journals.#load(inRuns);
    return journals;
  }

  /** Why the messages of a publish may not be saved; `undefined`: they may. */
  refusalOf(messages: readonly ForRun[]): RunRefusal | undefined {
    const added = new Map<number, number>();
    for (const message of messages) {
      const { entry, run } = message;
      if (!entry) continue;
      if (run?.invoker) {
        const refusal = this.#refusalOfEntry(run.invoker.entry, added);
        if (refusal) return refusal;
      }
      if (run && !run.isBySdk) continue;
      const refusal = this.#refusalOfEntry(entry, added);
      if (refusal) return refusal;
    }
    return undefined;
  }

  /** What `message` would repeat; `undefined`: nothing. */
  takenBy({ message, entry, run }: ForRun): Taken | undefined {
    if (!entry) return undefined;
    if (run?.isBySdk) return this.#advanced(entry.runKey);
    if (!run) return this.#holderOf(entry);
    const invoked = run.invoker && this.#holderOf(run.invoker.entry);
    if (invoked) return invoked;
    const active = this.#activeById.get(nameOf(message[MESSAGE_AT.project_id] as number, run.id));
    return active && { messageId: active.message_id, run: { id: active.id, createdAtMs: active.created_at_ms } };
  }

  /** Whether a message that follows from something else still has its place in its journal. */
  takes({ entry }: StoredNewMessage): boolean {
    if (!entry) return true;
    return this.#runs.get(entry.runKey)?.state === RUN_STATE.RUN_STARTED && !this.#slots.has(slotName(entry));
  }

  /**
   * The result of an invocation whose parent has failed meanwhile: the parent's log is to show it, but nobody is told
   * (workflow.md 12.3 item 6). Saves its content and its entry.
   */
  async keepForLog({ content, message, entry }: StoredNewMessage): Promise<void> {
    const run = entry && this.#runs.get(entry.runKey);
    if (!run || run.state !== RUN_STATE.RUN_FAILED || this.#slots.has(slotName(entry))) return;
    const { tx } = this.#context;
    const [invocation] = await tx.query('select 1 as one from journal where run_key = ? and slot = ? and kind = ?', [
      run.key,
      `i${entry.slot.slice(1)}`,
      ENTRY_KIND.invoke,
    ]);
    if (!invocation) return;
    const createdAtMs = content[CONTENT_AT.created_at_ms] as number;
    this.#records.push({ content, key: message[MESSAGE_AT.key] as number, createdAtMs, entry });
    this.#enterKey(run, entry, message[MESSAGE_AT.key] as number, createdAtMs);
    this.#slots.set(slotName(entry), content[CONTENT_AT.id] as string);
  }

  /** Gives `message` its place; it begins its run if it has one with it. */
  append(stored: StoredNewMessage): JournalPlace | undefined {
    const { message, content, entry, run } = stored;
    if (!entry) return undefined;
    if (run?.isBySdk) this.#adopt(stored, entry, run.config);
    else if (run) this.#begin(stored, entry);
    const known = this.#runs.get(entry.runKey);
    if (!known) throw new Error(`run ${entry.runKey} is not known`);
    const position = run?.isBySdk ? 0 : known.entries;
    if (!run?.isBySdk) this.#enter(known, entry, stored);
    const ownBytes = message[MESSAGE_AT.bytes] as number;
    const bytes = isDeliveredWithJournal(entry.kind) ? known.journal_bytes : ownBytes;
    const sent = entry.lazyAboveBytes !== null && bytes > entry.lazyAboveBytes ? 0 : bytes;
    message[MESSAGE_AT.run_key] = known.key;
    message[MESSAGE_AT.journal_position] = position;
    message[MESSAGE_AT.bytes] = sent;
    this.#slots.set(slotName(entry), content[CONTENT_AT.id] as string);
    return { position, bytes: sent };
  }

  /** An entry that is no message: its content is saved here as well. */
  record(record: StoredRecord, event: RunLogState): void {
    const known = this.#runs.get(record.entry.runKey);
    if (!known) throw new Error(`run ${record.entry.runKey} is not known`);
    this.#records.push(record);
    this.#enterKey(known, record.entry, record.key, record.createdAtMs);
    this.#slots.set(slotName(record.entry), record.content[CONTENT_AT.id] as string);
    this.#events.push({ projectId: known.project_id, runKey: known.key, state: event, atMs: record.createdAtMs });
  }

  /** An invocation of a run that runs already: it waits for the end of that one (workflow.md 14.8). */
  linkToActive({ message, run }: StoredNewMessage): void {
    if (!run?.invoker || this.#holderOf(run.invoker.entry)) return;
    const active = this.#activeById.get(nameOf(message[MESSAGE_AT.project_id] as number, run.id));
    if (!active) return;
    this.record(pointedAt(run.invoker, active), 'INVOKED');
    this.#invocations.push([active.key, run.invoker.key, run.invoker.entry.runKey]);
    active.version += 1;
    active.isChanged = true;
  }

  /** Writes runs, entries, records and events of runs; to be called before the messages are saved. */
  async save(): Promise<void> {
    const { tx, logs } = this.#context;
    const runs = [...this.#runs.values()];
    const begun = runs.filter(({ isNew }) => isNew);
    if (begun.length > 0) await tx.insertMany('runs', NEW_RUN_COLUMNS, begun.map(newRunRow));
    const changed = runs.filter(({ isNew, isChanged }) => isChanged && !isNew);
    if (changed.length > 0) {
      await tx.updateMany(
        'runs',
        'key',
        ['version', 'config', 'entries', 'journal_bytes'],
        changed.map((run) => [run.key, run.version, run.config, run.entries, run.journal_bytes]),
      );
    }
    for (const [runKey, key] of this.#replaced) {
      await tx.run('update journal set key = ? where run_key = ? and position = 0', [key, runKey]);
    }
    if (this.#entries.length > 0) {
      await tx.insertMany('journal', ['run_key', 'position', 'kind', 'key', 'slot', 'at_ms'], this.#entries);
    }
    if (this.#invocations.length > 0) {
      await tx.insertMany('invocations', ['run_key', 'key', 'parent_key'], this.#invocations);
    }
    if (this.#records.length > 0) {
      await tx.insertMany(
        'contents',
        CONTENT_COLUMNS,
        this.#records.map(({ content }) => content),
      );
    }
    await logs.append(tx, this.#events.map(eventOfRun));
  }

  async #load(messages: readonly ForRun[]): Promise<void> {
    const { tx } = this.#context;
    const entries = messages.flatMap(({ entry, run }) => {
      const appended = run && !run.isBySdk ? [] : entry ? [entry] : [];
      return run?.invoker ? [...appended, run.invoker.entry] : appended;
    });
    if (entries.length > 0) {
      const runKeys = [...new Set(entries.map(({ runKey }) => runKey))];
      this.#know(
        await tx.query<KnownRow>(`select ${KNOWN_FIELDS} ${KNOWN_FROM} where r.key in (??) for update`, [runKeys]),
      );
      await this.#loadSlots(tx, runKeys, [...new Set(entries.map(({ slot }) => slot))]);
    }
    const starts = messages.flatMap(({ message, run }) =>
      run && !run.isBySdk ? [{ projectId: message[MESSAGE_AT.project_id] as number, id: run.id }] : [],
    );
    for (const projectId of new Set(starts.map((start) => start.projectId))) {
      const ids = starts.filter((start) => start.projectId === projectId).map(({ id }) => id);
      this.#know(
        await tx.query<KnownRow>(
          `select ${KNOWN_FIELDS} ${KNOWN_FROM} where r.project_id = ? and r.id in (??) and r.state = 1 for update`,
          [projectId, [...new Set(ids)]],
        ),
      );
    }
  }

  #know(rows: readonly KnownRow[]): void {
    for (const row of rows) {
      if (this.#runs.has(row.key)) continue;
      const run: KnownRun = { ...row, isNew: false, isChanged: false };
      this.#runs.set(run.key, run);
      if (run.state === RUN_STATE.RUN_STARTED) this.#activeById.set(nameOf(run.project_id, run.id), run);
    }
  }

  async #loadSlots(tx: Transaction, runKeys: readonly number[], slots: readonly string[]): Promise<void> {
    const rows = await tx.query<{ run_key: number; slot: string; id: string }>(
      `select j.run_key, j.slot, c.id from journal j join contents c on c.key = j.key
       where j.run_key in (??) and j.slot in (??)`,
      [runKeys, slots],
    );
    for (const { run_key: runKey, slot, id } of rows) this.#slots.set(slotName({ runKey, slot }), id);
  }

  #refusalOfEntry(entry: StoredEntry, added: Map<number, number>): RunRefusal | undefined {
    const run = this.#runs.get(entry.runKey);
    if (run?.state !== RUN_STATE.RUN_STARTED) return 'runOver';
    if (entry.runVersion !== null && entry.runVersion !== run.version) return 'runChanged';
    const bytes = (added.get(run.key) ?? 0) + entry.bytes;
    added.set(run.key, bytes);
    if (this.#bytesMax > 0 && run.journal_bytes + bytes > this.#bytesMax) return { journalFull: this.#bytesMax };
    return undefined;
  }

  #holderOf(entry: StoredEntry): Taken | undefined {
    const messageId = this.#slots.get(slotName(entry));
    return messageId === undefined ? undefined : { messageId: messageId as MessageId, run: null };
  }

  /** A run that is past its first entry needs no library to make itself known. */
  #advanced(runKey: number): Taken | undefined {
    const run = this.#runs.get(runKey);
    if (run?.entries === 1) return undefined;
    return { messageId: run?.message_id ?? '', run: null };
  }

  #begin(stored: StoredNewMessage, entry: StoredEntry): void {
    const { message, content, run } = stored;
    if (!run) return;
    const begun: KnownRun = {
      key: entry.runKey,
      project_id: message[MESSAGE_AT.project_id] as number,
      id: run.id,
      url: run.url,
      created_at_ms: run.createdAtMs,
      state: RUN_STATE.RUN_STARTED,
      version: FIRST_VERSION,
      config: run.config,
      entries: 0,
      journal_bytes: 0,
      message_id: content[CONTENT_AT.id] as string,
      isNew: true,
      isChanged: true,
    };
    this.#runs.set(begun.key, begun);
    this.#activeById.set(nameOf(begun.project_id, begun.id), begun);
    if (run.invoker) {
      this.record(run.invoker, 'INVOKED');
      this.#invocations.push([begun.key, run.invoker.key, run.invoker.entry.runKey]);
    }
    this.#events.push({
      projectId: begun.project_id,
      runKey: begun.key,
      state: 'RUN_STARTED',
      atMs: begun.created_at_ms,
    });
  }

  /** The message takes the place of the run's first, in the words of the library that has made itself known. */
  #adopt({ message, content }: StoredNewMessage, { runKey }: StoredEntry, config: string): void {
    const run = this.#runs.get(runKey);
    if (!run) return;
    run.config = config;
    run.version += 1;
    run.isChanged = true;
    run.message_id = content[CONTENT_AT.id] as string;
    this.#replaced.push([runKey, message[MESSAGE_AT.key] as number]);
  }

  #enter(run: KnownRun, entry: StoredEntry, { message, content }: StoredNewMessage): void {
    this.#enterKey(run, entry, message[MESSAGE_AT.key] as number, content[CONTENT_AT.created_at_ms] as number);
  }

  #enterKey(run: KnownRun, entry: StoredEntry, key: number, atMs: number): void {
    this.#entries.push([run.key, run.entries, entry.kind, key, entry.slot, atMs]);
    run.entries += 1;
    run.journal_bytes += entry.bytes;
    run.isChanged = true;
  }
}

type KnownRow = Omit<KnownRun, 'isNew' | 'isChanged'>;

const NEW_RUN_COLUMNS = [
  'key',
  'project_id',
  'id',
  'url',
  'created_at_ms',
  'state',
  'version',
  'config',
  'entries',
  'journal_bytes',
] as const;

function newRunRow(run: KnownRun): SqlValue[] {
  return NEW_RUN_COLUMNS.map((column) => run[column]);
}

/** The record as it would have been made had it been known that the run runs already. */
function pointedAt(record: StoredRecord, run: KnownRun): StoredRecord {
  const content = [...record.content];
  const settings = JSON.parse(content[CONTENT_AT.settings] as string) as { invoke?: object };
  settings.invoke = { ...settings.invoke, runKey: run.key, createdAtMs: run.created_at_ms };
  content[CONTENT_AT.settings] = JSON.stringify(settings);
  return { ...record, content };
}

/** An event of the run itself names the run's first message. */
export function eventOfRun(event: { projectId: number; runKey: number; state: RunLogState; atMs: number }) {
  const { projectId, runKey, state, atMs } = event;
  return { projectId, key: runKey, runKey, events: [[atMs, codeOfLogState(state)] as [number, number]], floorMs: 0 };
}

function nameOf(projectId: number, id: string): string {
  return `${projectId} ${id}`;
}

function slotName({ runKey, slot }: Pick<StoredEntry, 'runKey' | 'slot'>): string {
  return `${runKey} ${slot}`;
}
