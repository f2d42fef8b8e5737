/**
 * How do messages enter the journals of their runs: each slot once, in the order in which they come, and only while the run
 * is active (P8)? One of these for a batch of commands: what comes first in the batch counts for what follows.
 */
import type { JournalPlace, RunLogState } from '../../../engine/model.ts';
import type { RunConfig } from '../../../workflow/model.ts';
import { FIRST_VERSION } from '../../../workflow/model.ts';
import type { SqlValue } from '../../driver.ts';
import type { WriteContext } from '../log-writer.ts';
import { CONTENT_AT, CONTENT_COLUMNS, codeOfLogState, MESSAGE_AT, type StoredNewMessage } from '../rows.ts';
import {
  ENTRY_KIND,
  isDeliveredWithJournal,
  RUN_FIELDS,
  RUN_STATE,
  type RunRow,
  type StoredEntry,
  type StoredRecord,
} from './run-rows.ts';
import { type Taken, TakenSlots } from './taken-slots.ts';

/** Why a message, and with it all of its publish, is refused. */
export type RunRefusal =
  | 'runOver'
  | 'runChanged'
  | { runTooEarly: number }
  | { journalFull: number }
  | { tooManyInvokers: number };

/** Invocations that wait for the end of one run: each is answered in the transaction that ends it, with all it returned. */
const INVOKERS_MAX = 100;

/** What is looked at of a message before it is saved. */
export type ForRun = Pick<StoredNewMessage, 'message' | 'entry' | 'run'>;

/** What the messages of a publish that were looked at add, as far as nothing has it yet. */
interface Added {
  /** Bytes to the journals of runs. */
  bytes: Map<number, number>;
  /** Invocations to the runs of a name. */
  invokers: Map<string, number>;
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
  readonly #slots = new TakenSlots();
  /** When the latest run of an id began, as far as one that is to begin now would not be later. */
  readonly #latestById = new Map<string, number>();
  readonly #entries: SqlValue[][] = [];
  readonly #records: StoredRecord[] = [];
  readonly #invocations: SqlValue[][] = [];
  /** How many wait for the end of each run that somebody wants to invoke and that runs already. */
  readonly #invokersOf = new Map<number, number>();
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

  /** For runs that begin with what others have recorded. */
  static empty(context: WriteContext): Journals {
    return new Journals(context, 0);
  }

  /** Why the messages of a publish may not be saved; `undefined`: they may. What is there already is no reason. */
  refusalOf(messages: readonly ForRun[]): RunRefusal | undefined {
    const added: Added = { bytes: new Map(), invokers: new Map() };
    for (const { message, entry, run } of messages) {
      if (!entry) continue;
      const refused = this.#refusalOfOne(message, entry, run, added);
      if (refused) return refused;
    }
    return undefined;
  }

  /** What `message` would repeat; `undefined`: nothing. */
  takenBy({ message, entry, run }: ForRun): Taken | undefined {
    if (!entry) return undefined;
    if (!run) return this.#slots.holderOf(entry);
    if (run.isBySdk) {
      const adopting = this.#runs.get(entry.runKey);
      return adopting && !awaitsLibrary(adopting) ? beginningOf(adopting) : undefined;
    }
    const invoked = run.invoker && this.#slots.holderOf(run.invoker.entry);
    if (invoked) return invoked;
    const active = this.#activeById.get(nameOf(message[MESSAGE_AT.project_id] as number, run.id));
    return active && beginningOf(active);
  }

  /** Whether a message that follows from something else still has its place in its journal. */
  takes({ message, entry, run }: StoredNewMessage): boolean {
    if (!entry) return true;
    if (run) return !this.#activeById.has(nameOf(message[MESSAGE_AT.project_id] as number, run.id));
    return this.#runs.get(entry.runKey)?.state === RUN_STATE.RUN_STARTED && !this.#slots.holderOf(entry);
  }

  /**
   * The result of an invocation whose parent has failed meanwhile: the parent's log is to show it, but nobody is told
   * (workflow.md 12.3 item 6). Saves its content and its entry.
   */
  async keepForLog({ content, message, entry }: StoredNewMessage): Promise<void> {
    if (!entry) return;
    const run = this.#runs.get(entry.runKey);
    if (run?.state !== RUN_STATE.RUN_FAILED || !entry.slot.startsWith('s') || this.#slots.holderOf(entry)) return;
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
    this.#slots.take(entry, { messageId: content[CONTENT_AT.id] as string, run: null });
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
    this.#slots.take(entry, { messageId: content[CONTENT_AT.id] as string, run: null });
    return { position, bytes: sent };
  }

  /** An entry that is no message: its content is saved here as well. Without `event` the log is not told of it. */
  record(record: StoredRecord, event?: RunLogState): void {
    const known = this.#runs.get(record.entry.runKey);
    if (!known) throw new Error(`run ${record.entry.runKey} is not known`);
    this.#records.push(record);
    this.#enterKey(known, record.entry, record.key, record.createdAtMs);
    this.#slots.take(record.entry, { messageId: record.content[CONTENT_AT.id] as string, run: null });
    if (event === undefined) return;
    this.#events.push({ projectId: known.project_id, runKey: known.key, state: event, atMs: record.createdAtMs });
  }

  /** An entry whose content another journal has too. */
  share(key: number, entry: StoredEntry): void {
    const known = this.#runs.get(entry.runKey);
    if (!known) throw new Error(`run ${entry.runKey} is not known`);
    this.#enterKey(known, entry, key, known.created_at_ms);
  }

  /** A run begins whose first entry is still to come. */
  begin(run: Pick<KnownRun, 'key' | 'project_id' | 'id' | 'url' | 'created_at_ms' | 'config' | 'message_id'>): void {
    const begun: KnownRun = {
      ...run,
      state: RUN_STATE.RUN_STARTED,
      version: FIRST_VERSION,
      entries: 0,
      journal_bytes: 0,
      isNew: true,
      isChanged: true,
    };
    this.#runs.set(begun.key, begun);
    this.#activeById.set(nameOf(begun.project_id, begun.id), begun);
  }

  /** The invocation waits for the end of a run. */
  awaitEnd(runKey: number, { key, entry }: StoredRecord): void {
    this.#invocations.push([runKey, key, entry.runKey]);
    this.#invokersOf.set(runKey, (this.#invokersOf.get(runKey) ?? 0) + 1);
  }

  logStart(run: { projectId: number; runKey: number; atMs: number }): void {
    this.#events.push({ ...run, state: 'RUN_STARTED' });
  }

  /** An invocation of a run that runs already: it waits for the end of that one (workflow.md 14.8). */
  linkToActive({ message, run }: StoredNewMessage): void {
    if (!run?.invoker || this.#slots.holderOf(run.invoker.entry)) return;
    const active = this.#activeById.get(nameOf(message[MESSAGE_AT.project_id] as number, run.id));
    if (!active) return;
    this.#invoke(pointedAt(run.invoker, active), active);
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
        await tx.query<KnownRow>(`select ${KNOWN_FIELDS} ${KNOWN_FROM} where r.key in (??) for update of r`, [runKeys]),
      );
      await this.#slots.load(tx, entries);
    }
    const starts = messages.flatMap(({ message, run }) =>
      run && !run.isBySdk
        ? [{ projectId: message[MESSAGE_AT.project_id] as number, id: run.id, createdAtMs: run.createdAtMs }]
        : [],
    );
    for (const projectId of new Set(starts.map((start) => start.projectId))) {
      const ofProject = starts.filter((start) => start.projectId === projectId);
      const ids = [...new Set(ofProject.map(({ id }) => id))];
      this.#know(
        await tx.query<KnownRow>(
          `select ${KNOWN_FIELDS} ${KNOWN_FROM} where r.project_id = ? and r.id in (??) and r.state = 1 for update of r`,
          [projectId, ids],
        ),
      );
      const fromMs = ofProject.reduce((least, { createdAtMs }) => Math.min(least, createdAtMs), Infinity);
      const latest = await tx.query<{ id: string; latest_ms: number }>(
        `select id, max(created_at_ms) as latest_ms from runs
         where project_id = ? and id in (??) and created_at_ms >= ? group by id`,
        [projectId, ids, fromMs],
      );
      for (const { id, latest_ms: latestMs } of latest) this.#latestById.set(nameOf(projectId, id), latestMs);
    }
    await this.#countInvokers(messages);
  }

  async #countInvokers(messages: readonly ForRun[]): Promise<void> {
    const invoked = messages.flatMap(({ message, run }) => {
      if (!run?.invoker) return [];
      return this.#activeById.get(nameOf(message[MESSAGE_AT.project_id] as number, run.id))?.key ?? [];
    });
    if (invoked.length === 0) return;
    const rows = await this.#context.tx.query<{ run_key: number; count: number }>(
      'select run_key, count(*) as count from invocations where run_key in (??) group by run_key',
      [[...new Set(invoked)]],
    );
    for (const { run_key: runKey, count } of rows) this.#invokersOf.set(runKey, count);
  }

  #know(rows: readonly KnownRow[]): void {
    for (const row of rows) {
      if (this.#runs.has(row.key)) continue;
      const run: KnownRun = { ...row, isNew: false, isChanged: false };
      this.#runs.set(run.key, run);
      if (run.state === RUN_STATE.RUN_STARTED) this.#activeById.set(nameOf(run.project_id, run.id), run);
    }
  }

  #refusalOfOne(
    message: StoredNewMessage['message'],
    entry: StoredEntry,
    run: StoredNewMessage['run'],
    added: Added,
  ): RunRefusal | undefined {
    if (!run) return this.#refusalOf(entry, added);
    if (run.isBySdk) return this.#refusalOfAdoption(entry);
    const name = nameOf(message[MESSAGE_AT.project_id] as number, run.id);
    const refusal = this.#refusalOfStart(name, run.createdAtMs);
    if (refusal || !run.invoker) return refusal;
    return this.#refusalOf(run.invoker.entry, added) ?? this.#refusalOfInvoker(name, run.invoker.entry, added);
  }

  #refusalOfInvoker(name: string, entry: StoredEntry, { invokers }: Added): RunRefusal | undefined {
    if (this.#slots.holderOf(entry)) return undefined;
    const count = (invokers.get(name) ?? 0) + 1;
    invokers.set(name, count);
    const present = this.#invokersOf.get(this.#activeById.get(name)?.key ?? -1) ?? 0;
    return present + count > INVOKERS_MAX ? { tooManyInvokers: INVOKERS_MAX } : undefined;
  }

  /** Runs of one id are told apart by when they began. */
  #refusalOfStart(name: string, createdAtMs: number): RunRefusal | undefined {
    const latestMs = this.#latestById.get(name);
    if (latestMs === undefined || latestMs < createdAtMs || this.#activeById.has(name)) return undefined;
    return { runTooEarly: latestMs };
  }

  #refusalOf(entry: StoredEntry, { bytes: added }: Added): RunRefusal | undefined {
    const run = this.#runs.get(entry.runKey);
    if (run?.state !== RUN_STATE.RUN_STARTED) return 'runOver';
    if (this.#slots.holderOf(entry)) return undefined;
    if (entry.runVersion !== null && entry.runVersion !== run.version) return 'runChanged';
    const bytes = (added.get(run.key) ?? 0) + entry.bytes;
    added.set(run.key, bytes);
    if (this.#bytesMax > 0 && run.journal_bytes + bytes > this.#bytesMax) return { journalFull: this.#bytesMax };
    return undefined;
  }

  #refusalOfAdoption(entry: StoredEntry): RunRefusal | undefined {
    const run = this.#runs.get(entry.runKey);
    if (run?.state !== RUN_STATE.RUN_STARTED) return 'runOver';
    return awaitsLibrary(run) && entry.runVersion !== run.version ? 'runChanged' : undefined;
  }

  #begin({ message, content, run }: StoredNewMessage, { runKey }: StoredEntry): void {
    if (!run) return;
    const projectId = message[MESSAGE_AT.project_id] as number;
    this.begin({
      key: runKey,
      project_id: projectId,
      id: run.id,
      url: run.url,
      created_at_ms: run.createdAtMs,
      config: run.config,
      message_id: content[CONTENT_AT.id] as string,
    });
    const begun = this.#runs.get(runKey);
    if (run.invoker && begun) this.#invoke(run.invoker, begun);
    this.logStart({ projectId, runKey, atMs: run.createdAtMs });
  }

  /** The parent's record of an invocation, and that it waits for the end of `child`. */
  #invoke(record: StoredRecord, child: KnownRun): void {
    this.record(record, 'INVOKED');
    this.#slots.take(record.entry, beginningOf(child));
    this.awaitEnd(child.key, record);
  }

  /** The message takes the place of the run's first, in the words of the library that has made itself known. */
  #adopt({ message, content }: StoredNewMessage, { runKey, bytes }: StoredEntry, config: string): void {
    const run = this.#runs.get(runKey);
    if (!run) return;
    run.config = config;
    run.journal_bytes = bytes; // there is no other entry
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

function beginningOf({ message_id: messageId, id, created_at_ms: createdAtMs }: KnownRun): Taken {
  return { messageId, run: { id, createdAtMs } };
}

/** Whether the library behind a run's URL is still to make itself known: the run has not gone past its first entry. */
function awaitsLibrary({ config, entries }: KnownRun): boolean {
  return entries === 1 && (JSON.parse(config) as RunConfig).isUnknownSdk;
}
