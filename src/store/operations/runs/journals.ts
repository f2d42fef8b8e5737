/**
 * Adds messages to the journals of their runs: each entry key once, in order of arrival, and only while the run is active
 * (P8). A batch of commands shares one `Journals`, so later commands see the entries of earlier ones.
 */
import type { JournalPosition, RunLogState } from '../../../engine/model.ts';
import { entryKeyOfInvocation, stepIdOfResult } from '../../../workflow/entry-keys.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { CONTENT_AT, MESSAGE_AT, type NewContentRow } from '../messages/columns.ts';
import type { StoredNewMessage } from '../messages/rows.ts';
import {
  awaitsSdk,
  type BatchRun,
  BatchRuns,
  firstMessageOf,
  type MessageOfRun,
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

  /** Reads the runs and entry keys of `messages`. Returns undefined if no message is of a run. */
  static async load(
    context: WriteContext,
    messages: readonly MessageOfRun[],
    bytesMax: number,
  ): Promise<Journals | undefined> {
    const inRuns = messages.filter(({ entry }) => entry !== undefined);
    if (inRuns.length === 0) return undefined;
    const journals = new Journals(context, bytesMax);
    await journals.#runs.load(context.tx, inRuns);
    return journals;
  }

  /** Creates the journals for a run that starts with the journal of another run. */
  static empty(context: WriteContext): Journals {
    return new Journals(context, 0);
  }

  /** Creates the journals for the next chunk of a run that starts with the journal of another run. */
  static async of(context: WriteContext, runKey: number): Promise<Journals> {
    const journals = Journals.empty(context);
    await journals.#runs.loadRuns(context.tx, [runKey]);
    return journals;
  }

  /** The reason to refuse the messages of a publish, if any. A repeated message is not refused. */
  refusalOf(messages: readonly MessageOfRun[]): RunRefusal | undefined {
    const refusals = new Refusals(this.#runs, this.#bytesMax);
    for (const message of messages) {
      const refused = refusals.check(message);
      if (refused) return refused;
    }
    return undefined;
  }

  /** The saved message that `message` repeats, or undefined if there is none. */
  duplicateOf({ message, entry, run }: MessageOfRun): EarlierMessage | undefined {
    if (!entry) return undefined;
    if (!run) return this.#runs.entryKeys.holderOf(entry);
    if (run.isBySdk) {
      const adopting = this.#runs.find(entry.runKey);
      return adopting && !awaitsSdk(adopting) ? firstMessageOf(adopting) : undefined;
    }
    const invoked = run.invoker && this.#runs.entryKeys.holderOf(run.invoker.entry);
    if (invoked) return invoked;
    const active = this.#activeLike(message, run.id);
    return active && firstMessageOf(active);
  }

  /** Whether the journal of its run can still accept a message that follows from another message. */
  accepts({ message, entry, run }: StoredNewMessage): boolean {
    if (!entry) return true;
    if (run) return !this.#activeLike(message, run.id);
    return this.#runs.find(entry.runKey)?.state === RUN_STATE.RUN_STARTED && !this.#runs.entryKeys.holderOf(entry);
  }

  /**
   * Saves the content and the entry of the result of an invocation whose parent run has failed in the meantime, so that
   * the log of the parent run shows the result. The parent run is not called.
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

  /** Assigns `message` its position in the journal. If the message starts a run, the run is added. */
  append(stored: StoredNewMessage): JournalPosition | undefined {
    const { message, content, entry, run } = stored;
    if (!entry) return undefined;
    if (run?.isBySdk) this.#adopt(stored, entry, run.config);
    else if (run) this.#startRun(stored, entry);
    const known = this.#runs.get(entry.runKey);
    const position = run?.isBySdk ? 0 : known.entries;
    if (!run?.isBySdk) {
      this.#addEntry(known, entry, message[MESSAGE_AT.key], content[CONTENT_AT.created_at_ms]);
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

  /** Adds an entry that is not a message, and saves its content. Without `event`, nothing is logged. */
  record(record: StoredRecord, event?: RunLogState): void {
    const { key, content, createdAtMs, entry } = record;
    const known = this.#runs.get(entry.runKey);
    this.#rows.addRecord(record);
    this.#addEntry(known, entry, key, createdAtMs);
    this.#runs.entryKeys.take(entry, { messageId: content[CONTENT_AT.id] });
    if (event === undefined) return;
    this.#rows.addEvent({ projectId: known.project_id, runKey: known.key, state: event, atMs: createdAtMs });
  }

  /** Adds an entry that shares its content with another journal. */
  share(key: number, entry: StoredEntry): void {
    const known = this.#runs.get(entry.runKey);
    this.#addEntry(known, entry, key, known.created_at_ms);
  }

  /** Starts a run, whose first entry must be added next. */
  start(run: RunStart): void {
    this.#runs.start(run);
  }

  /** Lets an invocation wait for the end of the run `runKey`. */
  addInvoker(runKey: number, invoker: Invoker): void {
    this.#rows.addInvocation(runKey, invoker);
    this.#runs.addInvoker(runKey);
  }

  logStart(run: Omit<EventOfRun, 'state'>): void {
    this.#rows.addEvent({ ...run, state: 'RUN_STARTED' });
  }

  /** Lets an invocation of a run that is already active wait for the end of that run. */
  linkToActive({ message, run }: StoredNewMessage): void {
    if (!run?.invoker || this.#runs.entryKeys.holderOf(run.invoker.entry)) return;
    const active = this.#activeLike(message, run.id);
    if (!active) return;
    this.#addInvocation(withInvokedRun(run.invoker, active), active);
    active.version += 1;
    active.isChanged = true;
  }

  /** Writes runs, entries, records and events of runs. Call it before the messages are saved. */
  save(): Promise<void> {
    return this.#rows.write(this.#context, this.#runs.all());
  }

  /** The active run with this id in the project of `message`. */
  #activeLike(message: StoredNewMessage['message'], id: string): BatchRun | undefined {
    return this.#runs.active(nameOf(message[MESSAGE_AT.project_id], id));
  }

  #startRun({ message, content, run }: StoredNewMessage, { runKey }: StoredEntry): void {
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
    if (run.invoker) this.#addInvocation(run.invoker, started);
    this.logStart({ projectId, runKey, atMs: run.createdAtMs });
  }

  /** Adds the parent's record of an invocation, which waits for the end of `child`. */
  #addInvocation(record: StoredRecord, child: BatchRun): void {
    this.record(record, 'INVOKED');
    this.#runs.entryKeys.take(record.entry, firstMessageOf(child));
    this.addInvoker(child.key, { key: record.key, parentKey: record.entry.runKey });
  }

  /** Replaces the run's first message with `message`, which fits the SDK that is known now. */
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

  #addEntry(run: BatchRun, entry: StoredEntry, key: number, atMs: number): void {
    this.#rows.addEntry(entry, { position: run.entries, key, atMs });
    run.entries += 1;
    run.journal_bytes += entry.bytes;
    run.isChanged = true;
    this.#runs.noteLast(entry);
  }
}

/** A copy of the record that names the active run in its settings, not the run that the caller would have started. */
function withInvokedRun(record: StoredRecord, run: BatchRun): StoredRecord {
  const content: NewContentRow = [...record.content];
  const settings = JSON.parse(content[CONTENT_AT.settings]) as { invoke?: object };
  settings.invoke = { ...settings.invoke, runKey: run.key, createdAtMs: run.created_at_ms };
  content[CONTENT_AT.settings] = JSON.stringify(settings);
  return { ...record, content };
}
