/** Decides whether a message may enter the journal of its run or start a run. A repeated message is not refused. */
import type { Accepted } from '../../../engine/messages/accepted.ts';
import { MESSAGE_AT } from '../messages/columns.ts';
import { awaitsSdk, type BatchRuns, type MessageOfRun, nameOf } from './batch-runs.ts';
import { ENTRY_KIND, RUN_STATE, type StoredEntry } from './run-rows.ts';

/** The reason to refuse a message and all other messages of its publish. */
export type RunRefusal = Extract<
  Accepted,
  { kind: 'runOver' | 'runChanged' | 'runTooEarly' | 'journalFull' | 'tooManyInvokers' }
>;

/**
 * The most invocations that may wait for one run. The transaction that ends the run saves a result for each invocation.
 */
const INVOKERS_MAX = 100;

/** Checks the messages of one publish, one after another. */
export class Refusals {
  readonly #runs: BatchRuns;
  readonly #bytesMax: number;
  /** Bytes that the checked messages add to the journals of runs; repeated messages do not count. */
  readonly #bytes = new Map<number, number>();
  /** Invocations that the checked messages add to the runs of a name. */
  readonly #invokers = new Map<string, number>();

  /** `bytesMax` is the maximum size of a journal; 0 means unlimited. */
  constructor(runs: BatchRuns, bytesMax: number) {
    this.#runs = runs;
    this.#bytesMax = bytesMax;
  }

  /** Returns undefined if the message may be saved. */
  check({ message, entry, run }: MessageOfRun): RunRefusal | undefined {
    if (!entry) return undefined;
    if (!run) return this.#checkEntry(entry);
    if (run.isBySdk) return this.#checkAdoption(entry);
    const name = nameOf(message[MESSAGE_AT.project_id], run.id);
    const refusal = this.#checkStart(name, run.createdAtMs);
    if (refusal || !run.invoker) return refusal;
    return this.#checkEntry(run.invoker.entry) ?? this.#checkInvoker(name, run.invoker.entry);
  }

  #checkEntry(entry: StoredEntry): RunRefusal | undefined {
    const run = this.#runs.find(entry.runKey);
    if (run?.state !== RUN_STATE.RUN_STARTED) return { kind: 'runOver' };
    if (this.#runs.entryKeys.holderOf(entry)) return undefined;
    // A client that asks for a step's settings again instead of running the step would do so for ever (contract W 6.6).
    if (entry.kind === ENTRY_KIND.stepConfig && this.#runs.endsInStepConfig(run.key)) return { kind: 'runOver' };
    if (entry.runVersion !== null && entry.runVersion !== run.version) return { kind: 'runChanged' };
    const bytes = (this.#bytes.get(run.key) ?? 0) + entry.bytes;
    this.#bytes.set(run.key, bytes);
    if (this.#bytesMax > 0 && run.journal_bytes + bytes > this.#bytesMax)
      return { kind: 'journalFull', limit: this.#bytesMax };
    return undefined;
  }

  #checkAdoption(entry: StoredEntry): RunRefusal | undefined {
    const run = this.#runs.find(entry.runKey);
    if (run?.state !== RUN_STATE.RUN_STARTED) return { kind: 'runOver' };
    return awaitsSdk(run) && entry.runVersion !== run.version ? { kind: 'runChanged' } : undefined;
  }

  /** Runs of one id are distinguished by their start times. */
  #checkStart(name: string, createdAtMs: number): RunRefusal | undefined {
    const latestMs = this.#runs.latestMs(name);
    if (latestMs === undefined || latestMs < createdAtMs || this.#runs.active(name)) return undefined;
    return { kind: 'runTooEarly', latestMs };
  }

  #checkInvoker(name: string, entry: StoredEntry): RunRefusal | undefined {
    if (this.#runs.entryKeys.holderOf(entry)) return undefined;
    const count = (this.#invokers.get(name) ?? 0) + 1;
    this.#invokers.set(name, count);
    const active = this.#runs.active(name);
    const present = active ? this.#runs.invokersOf(active.key) : 0;
    return present + count > INVOKERS_MAX ? { kind: 'tooManyInvokers', limit: INVOKERS_MAX } : undefined;
  }
}
