/**
 * Commits the batches of several threads together, so that these batches share an fsync.
 *
 * The batches that are queued when a transaction ends fill the next transaction, in order of arrival. Each thread has at
 * most one batch in progress, so threads are served round-robin.
 */

import { Fifo } from '../../../engine/admission/fair-queue.ts';
import type { BacklogKey } from '../../../engine/lanes/backlog-key.ts';
import type { BatchOutcome, WriteResult } from '../../batches/batch.ts';
import { BATCH_COST_MAX, costOf } from '../../batches/batch-queue.ts';
import { StoreFatal } from '../../driver.ts';
import type { WriteCommand, Writes } from '../../operations/all.ts';
import { joinChunks, type MessageChunk } from './batch-chunks.ts';
import type { Reply } from './messages.ts';

/** Maximum backlogs remembered per thread. A forgotten backlog is reported to the thread again, which costs little. */
const BACKLOGS_KNOWN_MAX = 10_000;

/** A thread that uses the database, and the waiting work that this thread already knows about. */
export class ThreadClient {
  readonly reply: (message: Reply) => void;
  /** When this thread will next claim due work: at once when the thread starts. */
  #claimsAtMs = -Infinity;
  /** Some of the endpoint backlogs that this thread knows to have messages. */
  readonly #backlogs = new Set<BacklogKey>();
  /** Chunks of the thread's next batch. */
  #chunks: MessageChunk[] = [];

  constructor(reply: (message: Reply) => void) {
    this.reply = reply;
  }

  addChunk(chunk: MessageChunk): void {
    this.#chunks.push(chunk);
  }

  /** Joins a batch with the chunks that were received before it. */
  withChunks(commands: readonly WriteCommand[]): readonly WriteCommand[] {
    const chunks = this.#chunks;
    this.#chunks = [];
    return joinChunks(commands, chunks);
  }

  /** The result of a claim reports the waiting work to the thread. Earlier notices to the thread are then outdated. */
  recordClaims(commands: readonly WriteCommand[], results: readonly WriteResult[]): void {
    for (const [index, { method }] of commands.entries()) {
      const result = results[index];
      if (method !== 'claim' || result?.kind !== 'result') continue;
      const { nextDueAtMs, waitingBacklogs, emptied } = result.result as Writes['claim']['result'];
      this.#claimsAtMs = nextDueAtMs ?? Infinity;
      for (const backlog of emptied) this.#backlogs.delete(backlog);
      this.recordKnown(waitingBacklogs);
    }
  }

  /** Remembers that this thread knows these backlogs. */
  recordKnown(waitingBacklogs: readonly BacklogKey[]): void {
    if (this.#backlogs.size >= BACKLOGS_KNOWN_MAX) this.#backlogs.clear();
    for (const backlog of waitingBacklogs) this.#backlogs.add(backlog);
  }

  /** Reports new work to this thread, unless its own next claim will find it in time. */
  notify({ othersDueAtMs: dueAtMs, waitingBacklogs, cancelledClaims }: Omit<BatchOutcome, 'results'>): void {
    const isSooner = dueAtMs !== null && dueAtMs < this.#claimsAtMs;
    const unknown = waitingBacklogs.filter((backlog) => !this.#backlogs.has(backlog));
    if (!isSooner && unknown.length === 0 && cancelledClaims.length === 0) return;
    if (isSooner) this.#claimsAtMs = dueAtMs;
    this.recordKnown(unknown);
    this.reply({ kind: 'notice', dueAtMs: isSooner ? dueAtMs : null, waitingBacklogs: unknown, cancelledClaims });
  }
}

interface QueuedBatch {
  client: ThreadClient;
  id: number;
  commands: readonly WriteCommand[];
}

export class Batcher {
  readonly #run: (commands: readonly WriteCommand[]) => Promise<BatchOutcome>;
  readonly #receiveAll: () => void;
  readonly #upkeep: () => void;
  readonly #clients = new Set<ThreadClient>();
  readonly #queue = new Fifo<QueuedBatch>();
  #running = false;

  /**
   * `run` commits commands, and rejects when the database must not be used any more. `receiveAll` receives the requests
   * that the threads have sent by now, without waiting. `upkeep` runs after the replies, so that only the next batch
   * waits for it.
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

  join(client: ThreadClient): void {
    this.#clients.add(client);
  }

  leave(client: ThreadClient): void {
    this.#clients.delete(client);
  }

  /** Resolves when no batch waits any more, or at once if another call runs the batches. Throws `StoreFatal`. */
  async submit(batch: QueuedBatch): Promise<void> {
    this.#queue.push(
      batch,
      batch.commands.reduce((sum, command) => sum + costOf(command), 0),
    );
    if (this.#running) return;
    this.#running = true;
    try {
      while (this.#queue.length > 0) {
        this.#receiveAll();
        const batches: QueuedBatch[] = [];
        this.#queue.takeInto(batches, BATCH_COST_MAX);
        this.#replyAll(batches, await this.#run(batches.flatMap(({ commands }) => commands)));
        this.#maintain();
      }
    } finally {
      this.#running = false;
    }
  }

  /** Failed upkeep may succeed later, for example after a backup has released its lock. Only `StoreFatal` is final. */
  #maintain(): void {
    try {
      this.#upkeep();
    } catch (error) {
      if (error instanceof StoreFatal) throw error;
    }
  }

  #replyAll(batches: readonly QueuedBatch[], outcome: BatchOutcome): void {
    let from = 0;
    for (const { client, id, commands } of batches) {
      const results = outcome.results.slice(from, from + commands.length);
      from += commands.length;
      client.recordClaims(commands, results);
      client.reply({ kind: 'outcome', id, outcome: { ...outcome, results } });
    }
    // If a transaction has only one client, this client made all the changes and knows the backlogs of its messages.
    const soleClient = batches.length === 1 ? batches[0]?.client : undefined;
    soleClient?.recordKnown(outcome.waitingBacklogs);
    for (const client of this.#clients) {
      if (client !== soleClient) client.notify(outcome);
    }
  }
}
