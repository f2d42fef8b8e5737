/**
 * How do the batches of several threads become one transaction, and who is told what came of it?
 *
 * Batches that wait when a transaction ends go together into the next one, whoever sent them, so that several threads
 * share their fsyncs as the callers of one thread do.
 */
import type { OriginLine } from '../../../engine/origin-line.ts';
import type { BatchOutcome, WriteCommand, Writes } from '../../batch.ts';
import { StoreFatal } from '../../driver.ts';
import { countTogether, weighAll } from '../../weight.ts';
import type { Reply } from './messages.ts';

export interface DeskOptions {
  /** Commits commands; rejects when the database must not be used any more. */
  run: (commands: readonly WriteCommand[]) => Promise<BatchOutcome>;
  /** Takes in what the callers have sent meanwhile, without waiting. */
  hearAll: () => void;
  /** Upkeep of the database, after the answers: nobody waits for it but the next batch. */
  maintain: () => void;
}

/** A thread, and what it knows of the work that waits. */
export class Caller {
  readonly reply: (message: Reply) => void;
  /** It looks for what is due at this time by itself. At its start it looks at once. */
  #looksAtMs = -Infinity;
  /** Lines in which it looks. */
  readonly #lines = new Set<OriginLine>();

  constructor(reply: (message: Reply) => void) {
    this.reply = reply;
  }

  /** A claim answers what else there is: from there on nothing that was said before counts. */
  noteClaim({ nextDueAtMs, parked, emptied }: Writes['claim']['answer']): void {
    this.#looksAtMs = nextDueAtMs ?? Infinity;
    for (const line of emptied) this.#lines.delete(line);
    for (const line of parked) this.#lines.add(line);
  }

  /** It knows of these by itself. */
  noteKnown(parkedLines: readonly OriginLine[]): void {
    for (const line of parkedLines) this.#lines.add(line);
  }

  /** Tells it what it does not know. What is due later than it looks it will hear from its claims. */
  tell(dueAtMs: number | null, parkedLines: readonly OriginLine[]): void {
    const isSooner = dueAtMs !== null && dueAtMs < this.#looksAtMs;
    const unknown = parkedLines.filter((line) => !this.#lines.has(line));
    if (!isSooner && unknown.length === 0) return;
    if (isSooner) this.#looksAtMs = dueAtMs;
    this.noteKnown(unknown);
    this.reply({ kind: 'left', dueAtMs: isSooner ? dueAtMs : null, parkedLines: unknown });
  }
}

interface Waiting {
  caller: Caller;
  id: number;
  commands: readonly WriteCommand[];
}

export class Desk {
  readonly #options: DeskOptions;
  readonly #callers = new Set<Caller>();
  #waiting: Waiting[] = [];
  #running = false;

  constructor(options: DeskOptions) {
    this.#options = options;
  }

  join(caller: Caller): void {
    this.#callers.add(caller);
  }

  leave(caller: Caller): void {
    this.#callers.delete(caller);
  }

  /** Resolves when nothing waits any more; at once when another call sees to it. Throws `StoreFatal`. */
  async take(batch: Waiting): Promise<void> {
    this.#waiting.push(batch);
    if (this.#running) return;
    this.#running = true;
    try {
      while (this.#waiting.length > 0) {
        this.#options.hearAll();
        const count = countTogether(this.#waiting, ({ commands }) => weighAll(commands));
        const together = this.#waiting.splice(0, count);
        const outcome = await this.#options.run(together.flatMap(({ commands }) => commands));
        this.#answer(together, outcome);
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

  #answer(together: readonly Waiting[], { results, ...left }: BatchOutcome): void {
    let at = 0;
    for (const { caller, id, commands } of together) {
      const own = results.slice(at, at + commands.length);
      at += commands.length;
      noteClaims(caller, commands, own);
      caller.reply({ kind: 'outcome', id, outcome: { ...left, results: own } });
    }
    // Who is alone in it has asked for all of it.
    const only = together.length === 1 ? together[0]?.caller : undefined;
    only?.noteKnown(left.parkedLines);
    for (const caller of this.#callers) {
      if (caller !== only) caller.tell(left.othersDueAtMs, left.parkedLines);
    }
  }
}

function noteClaims(caller: Caller, commands: readonly WriteCommand[], results: BatchOutcome['results']): void {
  for (const [index, { method }] of commands.entries()) {
    const result = results[index];
    if (method === 'claim' && result?.kind === 'answer') caller.noteClaim(result.answer as Writes['claim']['answer']);
  }
}
