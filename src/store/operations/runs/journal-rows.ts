/** How is what a batch of commands adds to runs and their journals written: in a handful of statements? */
import type { RunLogState } from '../../../engine/model.ts';
import type { SqlValue } from '../../driver.ts';
import type { MessageEvents, WriteContext } from '../logs/log-writer.ts';
import { CONTENT_COLUMNS } from '../messages/columns.ts';
import { codeOfLogState } from '../messages/rows.ts';
import type { BatchRun } from './batch-runs.ts';
import type { StoredEntry, StoredRecord } from './run-rows.ts';

/** The record of an invocation, and the run that has it. */
export interface Invoker {
  key: number;
  parentKey: number;
}

/** Something that happened to a run itself. */
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
  /** First entries that are already saved and now refer to another content. */
  readonly #replaced: [runKey: number, key: number][] = [];

  addEntry({ runKey, kind, entryKey }: StoredEntry, place: { position: number; key: number; atMs: number }): void {
    this.#entries.push([runKey, place.position, kind, place.key, entryKey, place.atMs]);
  }

  /** The content of an entry that is no message. */
  addRecord(record: StoredRecord): void {
    this.#records.push(record);
  }

  /** Saves that the invocation waits for the end of a run. */
  addInvocation(runKey: number, { key, parentKey }: Invoker): void {
    this.#invocations.push([runKey, key, parentKey]);
  }

  addEvent(event: EventOfRun): void {
    this.#events.push(event);
  }

  replaceFirst(runKey: number, key: number): void {
    this.#replaced.push([runKey, key]);
  }

  /** Writes all that was added, and those of `runs` that are new or have changed. */
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

/** An event of the run itself names the run's first message. */
export function eventOfRun({ projectId, runKey, state, atMs }: EventOfRun): MessageEvents {
  return { projectId, key: runKey, runKey, events: [[atMs, codeOfLogState(state)]], floorMs: 0 };
}
