/**
 * How do the batches of several threads become one transaction, and who is told what came of it?
 *
 * Batches that wait when a transaction ends go together into the next one, whoever sent them, so that several threads
 * share their fsyncs as the clients of one thread do.
 */
import type { OriginLine } from '../../../engine/lanes/origin-line.ts';
import type { BatchOutcome, WriteResult } from '../../batches/batch.ts';
import { BatchLine } from '../../batches/batch-line.ts';
import { StoreFatal } from '../../driver.ts';
import type { WriteCommand, Writes } from '../../operations/all.ts';
import { earlier } from '../../operations/due-times.ts';
import type { Reply } from './messages.ts';
import { joinPieces, type Piece } from './pieces.ts';

export interface BatcherOptions {
  /** Commits commands; rejects when the database must not be used any more. */
  run: (commands: readonly WriteCommand[]) => Promise<BatchOutcome>;
  /** Takes in what the clients have sent meanwhile, without waiting. */
  hearAll: () => void;
  /** Upkeep of the database, after the answers: nobody waits for it but the next batch. */
  maintain: () => void;
}

/** A thread, and what it knows of the work that waits. */
export class Client {
  readonly reply: (message: Reply) => void;
  /** It looks for what is due at this time by itself. At its start it looks at once. */
  #looksAtMs = -Infinity;
  /** Lines in which it looks. */
  readonly #lines = new Set<OriginLine>();
  /** Of its next batch. */
  #pieces: Piece[] = [];

  constructor(reply: (message: Reply) => void) {
    this.reply = reply;
  }

  keep(piece: Piece): void {
    this.#pieces.push(piece);
  }

  /** A batch with the pieces that came before it. */
  whole(commands: readonly WriteCommand[]): readonly WriteCommand[] {
    const pieces = this.#pieces;
    this.#pieces = [];
    return joinPieces(commands, pieces);
  }

  /** A claim answers what else there is: from there on nothing that was said before counts. */
  noteClaim({ nextDueAtMs, waitingLines, emptied }: Writes['claim']['answer']): void {
    this.#looksAtMs = nextDueAtMs ?? Infinity;
    for (const line of emptied) this.#lines.delete(line);
    for (const line of waitingLines) this.#lines.add(line);
  }

  /** It knows of these by itself. */
  noteKnown(waitingLines: readonly OriginLine[]): void {
    for (const line of waitingLines) this.#lines.add(line);
  }

  /** Tells it what it does not know. What is due later than it looks it will hear from its claims. */
  tell(dueAtMs: number | null, waitingLines: readonly OriginLine[]): void {
    const isSooner = dueAtMs !== null && dueAtMs < this.#looksAtMs;
    const unknown = waitingLines.filter((line) => !this.#lines.has(line));
    if (!isSooner && unknown.length === 0) return;
    if (isSooner) this.#looksAtMs = dueAtMs;
    this.noteKnown(unknown);
    this.reply({ kind: 'left', dueAtMs: isSooner ? dueAtMs : null, waitingLines: unknown });
  }
}

interface Batch {
  client: Client;
  id: number;
  commands: readonly WriteCommand[];
}

/** A batch, and what came of it so far. */
class Order {
  readonly client: Client;
  readonly #id: number;
  #missing: number;
  readonly #outcome: BatchOutcome = { results: [], dueAtMs: null, othersDueAtMs: null, waitingLines: [] };

  constructor({ client, id, commands }: Batch) {
    this.client = client;
    this.#id = id;
    this.#missing = commands.length;
  }

  note(index: number, command: WriteCommand, result: WriteResult | undefined): void {
    if (result) this.#outcome.results[index] = result;
    this.#missing -= 1;
    if (command.method === 'claim' && result?.kind === 'answer') {
      this.client.noteClaim(result.answer as Writes['claim']['answer']);
    }
  }

  /** A transaction is over that had commands of it: answers once none is missing. */
  close({ dueAtMs, othersDueAtMs, waitingLines }: BatchOutcome): void {
    const outcome = this.#outcome;
    outcome.dueAtMs = earlier(outcome.dueAtMs, dueAtMs);
    outcome.othersDueAtMs = earlier(outcome.othersDueAtMs, othersDueAtMs);
    outcome.waitingLines.push(...waitingLines);
    if (this.#missing === 0) this.client.reply({ kind: 'outcome', id: this.#id, outcome });
  }
}

interface Waiting {
  command: WriteCommand;
  order: Order;
  /** Of the command in its batch. */
  index: number;
}

export class Batcher {
  readonly #options: BatcherOptions;
  readonly #clients = new Set<Client>();
  readonly #waiting = new BatchLine<Waiting>();
  #running = false;

  constructor(options: BatcherOptions) {
    this.#options = options;
  }

  join(client: Client): void {
    this.#clients.add(client);
  }

  leave(client: Client): void {
    this.#clients.delete(client);
  }

  /** Resolves when nothing waits any more; at once when another call sees to it. Throws `StoreFatal`. */
  async take(batch: Batch): Promise<void> {
    const order = new Order(batch);
    for (const [index, command] of batch.commands.entries()) this.#waiting.push({ command, order, index });
    if (this.#running) return;
    this.#running = true;
    try {
      while (this.#waiting.length > 0) {
        this.#options.hearAll();
        const together = this.#waiting.take();
        this.#answer(together, await this.#options.run(together.map(({ command }) => command)));
        this.#maintain();
      }
    } finally {
      this.#running = false;
    }
  }

  /** What keeps it from it but a broken database, such as a backup's lock, may be gone the next time. */
  #maintain(): void {
    try {
      this.#options.maintain();
    } catch (error) {
      if (error instanceof StoreFatal) throw error;
    }
  }

  #answer(together: readonly Waiting[], outcome: BatchOutcome): void {
    for (const [at, { order, index, command }] of together.entries()) order.note(index, command, outcome.results[at]);
    const orders = new Set(together.map(({ order }) => order));
    for (const order of orders) order.close(outcome);
    const clients = new Set(together.map(({ order }) => order.client));
    // Who is alone in it has asked for all of it.
    const [first] = clients;
    const only = clients.size === 1 ? first : undefined;
    only?.noteKnown(outcome.waitingLines);
    for (const client of this.#clients) {
      if (client !== only) client.tell(outcome.othersDueAtMs, outcome.waitingLines);
    }
  }
}
