/**
 * How do the batches of several threads share a transaction?
 *
 * Batches that wait when a transaction ends are committed together, in order of arrival, until the transaction is full: then
 * threads share their fsyncs. Each thread has one batch under way at a time, so threads take turns.
 */

import { Fifo } from '../../../engine/admission/fair-queue.ts';
import type { BacklogKey } from '../../../engine/lanes/backlog-key.ts';
import type { BatchOutcome, WriteResult } from '../../batches/batch.ts';
import { BATCH_COST_MAX, costOf } from '../../batches/batch-queue.ts';
import { StoreFatal } from '../../driver.ts';
import type { WriteCommand, Writes } from '../../operations/all.ts';
import { joinChunks, type MessageChunk } from './batch-chunks.ts';
import type { Reply } from './messages.ts';

/** Lines of a thread that are remembered. It is told once more of those that were forgotten, which costs little. */
const BACKLOGS_KNOWN_MAX = 10_000;

/** A thread, and what it knows of the work that waits. */
export class Client {
  readonly reply: (message: Reply) => void;
  /** When this thread will look for due work by itself. When it starts, it looks at once. */
  #claimsAtMs = -Infinity;
  /** Lines in which this thread looks for messages, as far as they are remembered. */
  readonly #backlogs = new Set<BacklogKey>();
  /** Pieces of its next batch. */
  #chunks: MessageChunk[] = [];

  constructor(reply: (message: Reply) => void) {
    this.reply = reply;
  }

  addChunk(chunk: MessageChunk): void {
    this.#chunks.push(chunk);
  }

  /** A batch with the chunks that came before it. */
  whole(commands: readonly WriteCommand[]): readonly WriteCommand[] {
    const chunks = this.#chunks;
    this.#chunks = [];
    return joinChunks(commands, chunks);
  }

  /** The answer to a claim says what else waits: it replaces all that this thread was told before. */
  noteClaims(commands: readonly WriteCommand[], results: readonly WriteResult[]): void {
    for (const [index, { method }] of commands.entries()) {
      const result = results[index];
      if (method !== 'claim' || result?.kind !== 'answer') continue;
      const { nextDueAtMs, waitingBacklogs, emptied } = result.answer as Writes['claim']['answer'];
      this.#claimsAtMs = nextDueAtMs ?? Infinity;
      for (const backlog of emptied) this.#backlogs.delete(backlog);
      this.noteKnown(waitingBacklogs);
    }
  }

  /** This thread knows of these lines by itself. */
  noteKnown(waitingBacklogs: readonly BacklogKey[]): void {
    if (this.#backlogs.size >= BACKLOGS_KNOWN_MAX) this.#backlogs.clear();
    for (const backlog of waitingBacklogs) this.#backlogs.add(backlog);
  }

  /** Tells this thread what it does not know. What is due after its next look it learns from its own claims. */
  notify({ othersDueAtMs: dueAtMs, waitingBacklogs, cancelledClaims }: Omit<BatchOutcome, 'results'>): void {
    const isSooner = dueAtMs !== null && dueAtMs < this.#claimsAtMs;
    const unknown = waitingBacklogs.filter((backlog) => !this.#backlogs.has(backlog));
    if (!isSooner && unknown.length === 0 && cancelledClaims.length === 0) return;
    if (isSooner) this.#claimsAtMs = dueAtMs;
    this.noteKnown(unknown);
    this.reply({ kind: 'notice', dueAtMs: isSooner ? dueAtMs : null, waitingBacklogs: unknown, cancelledClaims });
  }
}

interface Batch {
  client: Client;
  id: number;
  commands: readonly WriteCommand[];
}

export class Batcher {
  readonly #run: (commands: readonly WriteCommand[]) => Promise<BatchOutcome>;
  readonly #receiveAll: () => void;
  readonly #upkeep: () => void;
  readonly #clients = new Set<Client>();
  readonly #waiting = new Fifo<Batch>();
  #running = false;

  /**
   * `run` commits commands, and rejects when the database must not be used any more. `receiveAll` takes in what the threads have
   * sent meanwhile, without waiting. `upkeep` of the database comes after the answers: only the next batch waits for it.
   */
  constructor(
    run: (commands: readonly WriteCommand[]) => Promise<BatchOutcome>,
    receiveAll: () => void,
    upkeep: () => void,
  ) {
    this.#run = run;
    this.#receiveAll = receiveAll;
    this.#upkeep = upkeep;
  }

  join(client: Client): void {
    this.#clients.add(client);
  }

  leave(client: Client): void {
    this.#clients.delete(client);
  }

  /** Resolves when nothing waits any more; at once if another call runs the batch. Throws `StoreFatal`. */
  async take(batch: Batch): Promise<void> {
    this.#waiting.push(
      batch,
      batch.commands.reduce((sum, command) => sum + costOf(command), 0),
    );
    if (this.#running) return;
    this.#running = true;
    try {
      while (this.#waiting.length > 0) {
        this.#receiveAll();
        const together: Batch[] = [];
        this.#waiting.takeInto(together, BATCH_COST_MAX);
        this.#answer(together, await this.#run(together.flatMap(({ commands }) => commands)));
        this.#maintain();
      }
    } finally {
      this.#running = false;
    }
  }

  /** Upkeep that fails may succeed the next time, as after a backup's lock is gone. Only a broken database is fatal. */
  #maintain(): void {
    try {
      this.#upkeep();
    } catch (error) {
      if (error instanceof StoreFatal) throw error;
    }
  }

  #answer(together: readonly Batch[], outcome: BatchOutcome): void {
    let from = 0;
    for (const { client, id, commands } of together) {
      const results = outcome.results.slice(from, from + commands.length);
      from += commands.length;
      client.noteClaims(commands, results);
      client.reply({ kind: 'outcome', id, outcome: { ...outcome, results } });
    }
    // A client that is alone in the transaction asked for all of it, and knows of its lines.
    const only = together.length === 1 ? together[0]?.client : undefined;
    only?.noteKnown(outcome.waitingBacklogs);
    for (const client of this.#clients) {
      if (client !== only) client.notify(outcome);
    }
  }
}
