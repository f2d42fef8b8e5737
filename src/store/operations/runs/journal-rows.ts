/** Collects the changes of a batch to runs and their journals, and writes them in a few statements. */
import type { RunLogState } from '../../../engine/model.ts';
import type { SqlValue } from '../../driver.ts';
import type { MessageEvents, WriteContext } from '../logs/log-writer.ts';
import { CONTENT_COLUMNS } from '../messages/columns.ts';
import { codeOfLogState } from '../messages/rows.ts';
import type { BatchRun } from './batch-runs.ts';
import type { StoredEntry, StoredRecord } from './run-rows.ts';

/** The record of an invocation, and the run whose journal has this record. */
export interface Invoker {
  key: number;
  parentKey: number;
}

/** A log event of a run itself. */
export interface EventOfRun {
  projectId: number;
  runKey: number;
  state: RunLogState;
  atMs: number;
}

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

export class JournalRows {
  readonly #entries: SqlValue[][] = [];
  readonly #records: StoredRecord[] = [];
  readonly #invocations: SqlValue[][] = [];
  readonly #events: EventOfRun[] = [];
  /** First entries that are already saved and now get another content. */
  readonly #replaced: [runKey: number, key: number][] = [];

  addEntry({ runKey, kind, entryKey }: StoredEntry, at: { position: number; key: number; atMs: number }): void {
    this.#entries.push([runKey, at.position, kind, at.key, entryKey, at.atMs]);
  }

  /** Adds the content of an entry that is not a message. */
  addRecord(record: StoredRecord): void {
    this.#records.push(record);
  }

  /** Adds an invocation that waits for the end of the run `runKey`. */
  addInvocation(runKey: number, { key, parentKey }: Invoker): void {
    this.#invocations.push([runKey, key, parentKey]);
  }

  addEvent(event: EventOfRun): void {
    this.#events.push(event);
  }

  replaceFirst(runKey: number, key: number): void {
    this.#replaced.push([runKey, key]);
  }

  /** Writes everything that was added, and the new or changed `runs`. */
  async write({ tx, logs }: WriteContext, runs: readonly BatchRun[]): Promise<void> {
    const started = runs.filter(({ isNew }) => isNew);
    if (started.length > 0) await tx.insertMany('runs', NEW_RUN_COLUMNS, started.map(newRunRow));
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
      await tx.send('update journal set key = ? where run_key = ? and position = 0', [key, runKey]);
    }
    if (this.#entries.length > 0) {
      await tx.insertMany('journal', ['run_key', 'position', 'kind', 'key', 'entry_key', 'at_ms'], this.#entries);
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
}

function newRunRow(run: BatchRun): SqlValue[] {
  return NEW_RUN_COLUMNS.map((column) => run[column]);
}

/** The log rows of an event of a run, which names the run's first message. */
export function eventOfRun({ projectId, runKey, state, atMs }: EventOfRun): MessageEvents {
  return { projectId, key: runKey, runKey, events: [[atMs, codeOfLogState(state)]], floorMs: 0 };
}
