/** Keeps the runs that a batch of commands has found or started, and the changes of the batch to these runs. */
import { FIRST_VERSION, type RunConfig } from '../../../workflow/model.ts';
import type { Transaction } from '../../driver.ts';
import { MESSAGE_AT } from '../messages/columns.ts';
import type { StoredNewMessage } from '../messages/rows.ts';
import { ENTRY_KIND, RUN_FIELDS, RUN_STATE, type RunRow, type StoredEntry } from './run-rows.ts';
import { type EarlierMessage, TakenEntryKeys } from './taken-entry-keys.ts';

/** The parts of a new message that its run needs. */
export type MessageOfRun = Pick<StoredNewMessage, 'message' | 'entry' | 'run'>;

/** A run with all changes of the batch so far. */
export interface BatchRun extends RunRow {
  journal_bytes: number;
  /** Id of the first message of the run. */
  message_id: string;
  isNew: boolean;
  isChanged: boolean;
}

type FoundRow = Omit<BatchRun, 'isNew' | 'isChanged'>;

/** A run that starts. */
export type RunStart = Pick<BatchRun, 'key' | 'project_id' | 'id' | 'url' | 'created_at_ms' | 'config' | 'message_id'>;

const FIELDS = `${RUN_FIELDS}, r.journal_bytes, c.id as message_id`;
const FROM =
  'from runs r lookup journal j on (j.run_key = r.key and j.position = 0) lookup contents c on (c.key = j.key)';

export class BatchRuns {
  /** Taken entry keys of the journals to which the batch adds. */
  readonly entryKeys = new TakenEntryKeys();
  readonly #runs = new Map<number, BatchRun>();
  readonly #activeByName = new Map<string, BatchRun>();
  /** The start time of the latest run by name. Absent if a run that starts in this batch is later in any case. */
  readonly #latestByName = new Map<string, number>();
  /** For each active run that a message of the batch would invoke: the number of invocations that wait for this run. */
  readonly #invokersOf = new Map<number, number>();

  /** Runs whose journal ends with a `stepConfig` and to which the batch would add another `stepConfig`. */
  readonly #endingInStepConfig = new Set<number>();

  /** Reads the runs and entry keys of `messages`. */
  async load(tx: Transaction, messages: readonly MessageOfRun[]): Promise<void> {
    const entries = messages.flatMap(({ entry, run }) => {
      const appended = run && !run.isBySdk ? [] : entry ? [entry] : [];
      return run?.invoker ? [...appended, run.invoker.entry] : appended;
    });
    if (entries.length > 0) {
      await this.loadRuns(tx, [...new Set(entries.map(({ runKey }) => runKey))]);
      await this.entryKeys.load(tx, entries);
      await this.#loadLastStepConfigs(tx, entries);
    }
    await this.#loadNames(tx, messages);
    await this.#countInvokers(tx, messages);
  }

  async loadRuns(tx: Transaction, runKeys: number[]): Promise<void> {
    this.#addFound(await tx.query<FoundRow>(`select ${FIELDS} ${FROM} where r.key in (??) for update of r`, [runKeys]));
  }

  all(): BatchRun[] {
    return [...this.#runs.values()];
  }

  find(key: number): BatchRun | undefined {
    return this.#runs.get(key);
  }

  get(key: number): BatchRun {
    const run = this.#runs.get(key);
    if (!run) throw new Error(`run ${key} is not known`);
    return run;
  }

  /** The active run of a name (see `nameOf`). */
  active(name: string): BatchRun | undefined {
    return this.#activeByName.get(name);
  }

  /** The start of the latest run of a name; undefined if a run that starts now is later. */
  latestMs(name: string): number | undefined {
    return this.#latestByName.get(name);
  }

  invokersOf(key: number): number {
    return this.#invokersOf.get(key) ?? 0;
  }

  addInvoker(key: number): void {
    this.#invokersOf.set(key, this.invokersOf(key) + 1);
  }

  /** Whether the last entry of the journal is a `stepConfig`; only known if the batch would add another `stepConfig`. */
  endsInStepConfig(key: number): boolean {
    return this.#endingInStepConfig.has(key);
  }

  noteLast({ runKey, kind }: StoredEntry): void {
    if (kind === ENTRY_KIND.stepConfig) this.#endingInStepConfig.add(runKey);
    else this.#endingInStepConfig.delete(runKey);
  }

  /** Adds a run, whose first entry must be added next. */
  start(run: RunStart): BatchRun {
    const started: BatchRun = {
      ...run,
      state: RUN_STATE.RUN_STARTED,
      version: FIRST_VERSION,
      entries: 0,
      journal_bytes: 0,
      isNew: true,
      isChanged: true,
    };
    this.#runs.set(started.key, started);
    this.#activeByName.set(nameOf(started.project_id, started.id), started);
    return started;
  }

  async #loadLastStepConfigs(tx: Transaction, entries: readonly StoredEntry[]): Promise<void> {
    const runKeys = entries.flatMap(({ kind, runKey }) => (kind === ENTRY_KIND.stepConfig ? [runKey] : []));
    if (runKeys.length === 0) return;
    const rows = await tx.query<{ key: number }>(
      `select r.key from runs r lookup journal j on (j.run_key = r.key and j.position = r.entries - 1)
       where r.key in (??) and j.kind = ${ENTRY_KIND.stepConfig}`,
      [[...new Set(runKeys)]],
    );
    for (const { key } of rows) this.#endingInStepConfig.add(key);
  }

  /** Reads the runs that have the same names as runs that are about to start. */
  async #loadNames(tx: Transaction, messages: readonly MessageOfRun[]): Promise<void> {
    const starts = messages.flatMap(({ message, run }) =>
      run && !run.isBySdk
        ? [{ projectId: message[MESSAGE_AT.project_id], id: run.id, createdAtMs: run.createdAtMs }]
        : [],
    );
    for (const projectId of new Set(starts.map((start) => start.projectId))) {
      const ofProject = starts.filter((start) => start.projectId === projectId);
      const ids = [...new Set(ofProject.map(({ id }) => id))];
      this.#addFound(
        await tx.query<FoundRow>(
          `select ${FIELDS} ${FROM} where r.project_id = ? and r.id in (??) and r.state = ${RUN_STATE.RUN_STARTED} for update of r`,
          [projectId, ids],
        ),
      );
      const fromMs = ofProject.reduce((least, { createdAtMs }) => Math.min(least, createdAtMs), Infinity);
      const latest = await tx.query<{ id: string; latest_ms: number }>(
        `select id, max(created_at_ms) as latest_ms from runs
         where project_id = ? and id in (??) and created_at_ms >= ? group by id`,
        [projectId, ids, fromMs],
      );
      for (const { id, latest_ms: latestMs } of latest) this.#latestByName.set(nameOf(projectId, id), latestMs);
    }
  }

  async #countInvokers(tx: Transaction, messages: readonly MessageOfRun[]): Promise<void> {
    const invoked = messages.flatMap(({ message, run }) => {
      if (!run?.invoker) return [];
      return this.#activeByName.get(nameOf(message[MESSAGE_AT.project_id], run.id))?.key ?? [];
    });
    if (invoked.length === 0) return;
    const rows = await tx.query<{ run_key: number; count: number }>(
      'select run_key, count(*) as count from invocations where run_key in (??) group by run_key',
      [[...new Set(invoked)]],
    );
    for (const { run_key: runKey, count } of rows) this.#invokersOf.set(runKey, count);
  }

  #addFound(rows: readonly FoundRow[]): void {
    for (const row of rows) {
      if (this.#runs.has(row.key)) continue;
      const run: BatchRun = { ...row, isNew: false, isChanged: false };
      this.#runs.set(run.key, run);
      if (run.state === RUN_STATE.RUN_STARTED) this.#activeByName.set(nameOf(run.project_id, run.id), run);
    }
  }
}

/** The name of a run, which is unique among active runs. */
export function nameOf(projectId: number, id: string): string {
  return `${projectId} ${id}`;
}

/** The first message of an active run, which a duplicate start repeats. */
export function firstMessageOf({ message_id: messageId, id, created_at_ms: createdAtMs }: BatchRun): EarlierMessage {
  return { messageId, run: { id, createdAtMs } };
}

/** Whether the SDK at the run's URL is still unknown: the run has only its first entry. */
export function awaitsSdk({ config, entries }: BatchRun): boolean {
  return entries === 1 && (JSON.parse(config) as RunConfig).isUnknownSdk;
}
