/**
 * How do messages enter the journals of their runs: each entry key once, in order of arrival, and only while the run is
 * active (P8)? There is one `Journals` for a batch of commands, so later commands see what earlier ones added.
 */
import type { JournalPlace, RunLogState } from '../../../engine/model.ts';
import { entryKeyOfInvocation, stepIdOfResult } from '../../../workflow/entry-keys.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { CONTENT_AT, MESSAGE_AT, type NewContentRow } from '../messages/columns.ts';
import type { StoredNewMessage } from '../messages/rows.ts';
import {
  awaitsLibrary,
  type BatchRun,
  BatchRuns,
  beginningOf,
  type ForRun,
  nameOf,
  type RunStart,
} from './batch-runs.ts';
import { type EventOfRun, type Invoker, JournalRows } from './journal-rows.ts';
import { Refusals, type RunRefusal } from './refusals.ts';
import { ENTRY_KIND, isDeliveredWithJournal, RUN_STATE, type StoredEntry, type StoredRecord } from './run-rows.ts';
import type { EarlierMessage } from './taken-entry-keys.ts';

export class Journals {
  readonly #context: WriteContext;
  readonly #bytesMax: number;
  readonly #runs = new BatchRuns();
  readonly #rows = new JournalRows();

  private constructor(context: WriteContext, bytesMax: number) {
    this.#context = context;
    this.#bytesMax = bytesMax;
  }

  /** Reads the runs and entry keys that `messages` name. `undefined`: they name none, and nothing was read. */
  static async load(
    context: WriteContext,
    messages: readonly ForRun[],
    bytesMax: number,
  ): Promise<Journals | undefined> {
    const inRuns = messages.filter(({ entry }) => entry !== undefined);
    if (inRuns.length === 0) return undefined;
    const journals = new Journals(context, bytesMax);
    await journals.#runs.load(context.tx, inRuns);
    return journals;
  }

  /** For runs that begin with the journal of another run. */
  static empty(context: WriteContext): Journals {
    return new Journals(context, 0);
  }

  /** For a run that continues with the journal of another one. */
  static async of(context: WriteContext, runKey: number): Promise<Journals> {
    const journals = Journals.empty(context);
    await journals.#runs.loadRuns(context.tx, [runKey]);
    return journals;
  }

  /** Why the messages of a publish may not be saved; `undefined`: they may. A repeated message is no reason. */
  refusalOf(messages: readonly ForRun[]): RunRefusal | undefined {
    const refusals = new Refusals(this.#runs, this.#bytesMax);
    for (const message of messages) {
      const refused = refusals.of(message);
      if (refused) return refused;
    }
    return undefined;
  }

  /** The saved message that `message` would repeat; `undefined`: none. */
  takenBy({ message, entry, run }: ForRun): EarlierMessage | undefined {
    if (!entry) return undefined;
    if (!run) return this.#runs.entryKeys.holderOf(entry);
    if (run.isBySdk) {
      const adopting = this.#runs.find(entry.runKey);
      return adopting && !awaitsLibrary(adopting) ? beginningOf(adopting) : undefined;
    }
    const invoked = run.invoker && this.#runs.entryKeys.holderOf(run.invoker.entry);
    if (invoked) return invoked;
    const active = this.#activeLike(message, run.id);
    return active && beginningOf(active);
  }

  /** Whether a message that follows from another one still belongs in its journal. */
  takes({ message, entry, run }: StoredNewMessage): boolean {
    if (!entry) return true;
    if (run) return !this.#activeLike(message, run.id);
    return this.#runs.find(entry.runKey)?.state === RUN_STATE.RUN_STARTED && !this.#runs.entryKeys.holderOf(entry);
  }

  /**
   * The result of an invocation whose parent has failed meanwhile. Its content and its entry are saved, so that the
   * parent's log shows it, but the parent is not called.
   */
  async keepForLog({ content, message, entry }: StoredNewMessage): Promise<void> {
    if (!entry) return;
    const run = this.#runs.find(entry.runKey);
    const stepId = stepIdOfResult(entry.entryKey);
    if (run?.state !== RUN_STATE.RUN_FAILED || stepId === undefined || this.#runs.entryKeys.holderOf(entry)) return;
    const { tx } = this.#context;
    const [invocation] = await tx.query(
      'select 1 as one from journal where run_key = ? and entry_key = ? and kind = ?',
      [run.key, entryKeyOfInvocation(stepId), ENTRY_KIND.invoke],
    );
    if (!invocation) return;
    const createdAtMs = content[CONTENT_AT.created_at_ms];
    this.record({ content, key: message[MESSAGE_AT.key], createdAtMs, entry });
  }

  /** Gives `message` its place in the journal. If it has a run with it, that run begins. */
  append(stored: StoredNewMessage): JournalPlace | undefined {
    const { message, content, entry, run } = stored;
    if (!entry) return undefined;
    if (run?.isBySdk) this.#adopt(stored, entry, run.config);
    else if (run) this.#begin(stored, entry);
    const known = this.#runs.get(entry.runKey);
    const position = run?.isBySdk ? 0 : known.entries;
    if (!run?.isBySdk) {
      this.#enter(known, entry, message[MESSAGE_AT.key], content[CONTENT_AT.created_at_ms]);
    }
    const ownBytes = message[MESSAGE_AT.bytes];
    const bytes = isDeliveredWithJournal(entry.kind) ? known.journal_bytes : ownBytes;
    const sent = entry.lazyAboveBytes !== null && bytes > entry.lazyAboveBytes ? 0 : bytes;
    message[MESSAGE_AT.run_key] = known.key;
    message[MESSAGE_AT.journal_position] = position;
    message[MESSAGE_AT.bytes] = sent;
    this.#runs.entryKeys.take(entry, { messageId: content[CONTENT_AT.id] });
    return { position, bytes: sent };
  }

  /** Adds an entry that is no message, and saves its content. Without `event` nothing is logged. */
  record(record: StoredRecord, event?: RunLogState): void {
    const { key, content, createdAtMs, entry } = record;
    const known = this.#runs.get(entry.runKey);
    this.#rows.addRecord(record);
    this.#enter(known, entry, key, createdAtMs);
    this.#runs.entryKeys.take(entry, { messageId: content[CONTENT_AT.id] });
    if (event === undefined) return;
    this.#rows.addEvent({ projectId: known.project_id, runKey: known.key, state: event, atMs: createdAtMs });
  }

  /** Adds an entry whose content another journal has too. */
  share(key: number, entry: StoredEntry): void {
    const known = this.#runs.get(entry.runKey);
    this.#enter(known, entry, key, known.created_at_ms);
  }

  /** Begins a run whose first entry comes next. */
  start(run: RunStart): void {
    this.#runs.start(run);
  }

  /** The invocation waits for the end of a run. */
  awaitEnd(runKey: number, invoker: Invoker): void {
    this.#rows.addInvocation(runKey, invoker);
    this.#runs.addInvoker(runKey);
  }

  logStart(run: Omit<EventOfRun, 'state'>): void {
    this.#rows.addEvent({ ...run, state: 'RUN_STARTED' });
  }

  /** Handles an invocation of a run that is already active: it waits for the end of that run. */
  linkToActive({ message, run }: StoredNewMessage): void {
    if (!run?.invoker || this.#runs.entryKeys.holderOf(run.invoker.entry)) return;
    const active = this.#activeLike(message, run.id);
    if (!active) return;
    this.#invoke(pointedAt(run.invoker, active), active);
    active.version += 1;
    active.isChanged = true;
  }

  /** Writes runs, entries, records and events of runs. Call this before the messages are saved. */
  save(): Promise<void> {
    return this.#rows.write(this.#context, this.#runs.all());
  }

  /** The active run that has the id of the message's run. */
  #activeLike(message: StoredNewMessage['message'], id: string): BatchRun | undefined {
    return this.#runs.active(nameOf(message[MESSAGE_AT.project_id], id));
  }

  #begin({ message, content, run }: StoredNewMessage, { runKey }: StoredEntry): void {
    if (!run) return;
    const projectId = message[MESSAGE_AT.project_id];
    const started = this.#runs.start({
      key: runKey,
      project_id: projectId,
      id: run.id,
      url: run.url,
      created_at_ms: run.createdAtMs,
      config: run.config,
      message_id: content[CONTENT_AT.id],
    });
    if (run.invoker) this.#invoke(run.invoker, started);
    this.logStart({ projectId, runKey, atMs: run.createdAtMs });
  }

  /** The parent's record of an invocation, and that it waits for the end of `child`. */
  #invoke(record: StoredRecord, child: BatchRun): void {
    this.record(record, 'INVOKED');
    this.#runs.entryKeys.take(record.entry, beginningOf(child));
    this.awaitEnd(child.key, { key: record.key, parentKey: record.entry.runKey });
  }

  /** The message replaces the run's first one: it comes from the SDK, which is now known. */
  #adopt({ message, content }: StoredNewMessage, { runKey, bytes }: StoredEntry, config: string): void {
    const run = this.#runs.find(runKey);
    if (!run) return;
    run.config = config;
    run.journal_bytes = bytes; // there is no other entry
    run.version += 1;
    run.isChanged = true;
    run.message_id = content[CONTENT_AT.id];
    this.#rows.replaceFirst(runKey, message[MESSAGE_AT.key]);
  }

  #enter(run: BatchRun, entry: StoredEntry, key: number, atMs: number): void {
    this.#rows.addEntry(entry, { position: run.entries, key, atMs });
    run.entries += 1;
    run.journal_bytes += entry.bytes;
    run.isChanged = true;
    this.#runs.noteLast(entry);
  }
}

/** The record as it would be if the caller had known that the run is already active. */
function pointedAt(record: StoredRecord, run: BatchRun): StoredRecord {
  const content: NewContentRow = [...record.content];
  const settings = JSON.parse(content[CONTENT_AT.settings]) as { invoke?: object };
  settings.invoke = { ...settings.invoke, runKey: run.key, createdAtMs: run.created_at_ms };
  content[CONTENT_AT.settings] = JSON.stringify(settings);
  return { ...record, content };
}
