/**
 * How do the batches of several threads become one transaction, and how does each thread get its results?
 *
 * Batches that wait when a transaction ends go into the next one together, whichever thread sent them. So several
 * threads share their fsyncs, as the clients of one thread do.
 */
import type { OriginLine } from '../../../engine/lanes/origin-line.ts';
import { addNews, type BatchOutcome, nothingDone, type WriteResult } from '../../batches/batch.ts';
import { BatchLine } from '../../batches/batch-line.ts';
import { StoreFatal } from '../../driver.ts';
import type { WriteCommand, Writes } from '../../operations/all.ts';
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

/** Lines of a thread that are remembered. It is told once more of those that were forgotten, which costs little. */
const LINES_KNOWN_MAX = 10_000;

/** A thread, and what it knows of the work that waits. */
export class Client {
  readonly reply: (message: Reply) => void;
  /** When this thread will look for due work by itself. When it starts, it looks at once. */
  #looksAtMs = -Infinity;
  /** Lines in which this thread looks for messages, as far as they are remembered. */
  readonly #lines = new Set<OriginLine>();
  /** Pieces of its next batch. */
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

  /** The answer to a claim says what else waits: it replaces all that this thread was told before. */
  noteClaim({ nextDueAtMs, waitingLines, emptied }: Writes['claim']['answer']): void {
    this.#looksAtMs = nextDueAtMs ?? Infinity;
    for (const line of emptied) this.#lines.delete(line);
    this.noteKnown(waitingLines);
  }

  /** This thread knows of these lines by itself. */
  noteKnown(waitingLines: readonly OriginLine[]): void {
    if (this.#lines.size >= LINES_KNOWN_MAX) this.#lines.clear();
    for (const line of waitingLines) this.#lines.add(line);
  }

  /** Tells this thread what it does not know. What is due after its next look it learns from its own claims. */
  tell({ othersDueAtMs: dueAtMs, waitingLines, cancelledClaims }: Omit<BatchOutcome, 'results'>): void {
    const isSooner = dueAtMs !== null && dueAtMs < this.#looksAtMs;
    const unknown = waitingLines.filter((line) => !this.#lines.has(line));
    if (!isSooner && unknown.length === 0 && cancelledClaims.length === 0) return;
    if (isSooner) this.#looksAtMs = dueAtMs;
    this.noteKnown(unknown);
    this.reply({ kind: 'left', dueAtMs: isSooner ? dueAtMs : null, waitingLines: unknown, cancelledClaims });
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
  readonly #outcome: BatchOutcome = nothingDone([]);

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

  /** A transaction with commands of this batch is over: answers the batch once no result is missing. */
  close(ofTransaction: BatchOutcome): void {
    addNews(this.#outcome, ofTransaction);
    if (this.#missing === 0) this.client.reply({ kind: 'outcome', id: this.#id, outcome: this.#outcome });
  }
}

interface Waiting {
  command: WriteCommand;
  order: Order;
  /** Position of the command in its batch. */
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

  /** Resolves when nothing waits any more; at once if another call runs the commands. Throws `StoreFatal`. */
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

  /** Upkeep that fails may succeed the next time, as after a backup's lock is gone. Only a broken database is fatal. */
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
    // A client that is alone in the transaction asked for all of it, and knows of its lines.
    const [first] = clients;
    const only = clients.size === 1 ? first : undefined;
    only?.noteKnown(outcome.waitingLines);
    for (const client of this.#clients) {
      if (client !== only) client.tell(outcome);
    }
  }
}
