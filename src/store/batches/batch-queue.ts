/**
 * Chooses which of the waiting commands go into the next transaction.
 *
 * Urgent commands come first: they have a deadline, or cost almost nothing. Then come commands that advance accepted messages:
 * an overloaded server delivers accepted messages before it accepts more. Accepts come last, round-robin by project, so that
 * one busy project does not delay the others. A part of each batch is reserved for accepts, so that they never starve.
 *
 * Commands of one class, and accepts of one project, keep their order. Between classes there is no order: a caller that
 * needs one command done before another waits for the result of the first.
 */
import { FairQueue, Fifo } from '../../engine/admission/fair-queue.ts';
import { classOf, traitsOf, type WriteCommand } from '../operations/all.ts';
import { projectOf, type StoredNewMessage, weightOf } from '../operations/messages/rows.ts';
import type { Weight } from '../operations/operation.ts';

/** Maximum cost of one transaction, counted in rows of small messages. Longer transactions delay other commands. */
export const BATCH_COST_MAX = 200;
/** This many bytes cost as much as one row: 4 MiB fill a transaction. */
const BYTES_PER_ROW = (4 * 1024 * 1024) / BATCH_COST_MAX;

/** The cost of `command`, at least 1. */
export function costOf(command: WriteCommand): number {
  return cost(traitsOf(command).weight(command.args));
}

/** The cost of saving `messages`, at least 1. */
export function costOfMessages(messages: readonly StoredNewMessage[]): number {
  return cost(weightOf(messages));
}

function cost({ rows, bytes = 0 }: Weight): number {
  return Math.max(1, rows, Math.ceil(bytes / BYTES_PER_ROW));
}

/** The part of a batch that is reserved for accepts. */
const ACCEPT_SHARE = 1 / 4;

interface QueuedCommand {
  command: WriteCommand;
}

/** Deterministic: the batches depend only on the pushed commands and their order. */
export class BatchQueue<T extends QueuedCommand> {
  readonly #costMax: number;
  readonly #urgent = new Fifo<T>();
  readonly #onward = new Fifo<T>();
  readonly #accepts = new FairQueue<T>();
  /** Cost by which accepts have exceeded their part of earlier batches. This cost is deducted from the next batches. */
  #acceptDebt = 0;

  constructor(costMax = BATCH_COST_MAX) {
    this.#costMax = costMax;
  }

  get length(): number {
    return this.#urgent.length + this.#onward.length + this.#accepts.length;
  }

  push(entry: T): void {
    const { command } = entry;
    const commandClass = classOf(command);
    const cost = costOf(command);
    if (commandClass === 'urgent') this.#urgent.push(entry, cost);
    else if (commandClass === 'onward') this.#onward.push(entry, cost);
    else this.#accepts.push(projectOfAccept(command), entry, cost);
  }

  /** Removes and returns the next batch: empty if no command waits. Its last command may exceed the cost of a batch. */
  take(): T[] {
    const batch: T[] = [];
    const share = Math.floor(this.#costMax * ACCEPT_SHARE);
    const reserved = Math.min(Math.max(0, share - this.#acceptDebt), this.#accepts.cost);
    let capacity = this.#costMax;
    capacity -= this.#urgent.takeInto(batch, capacity);
    capacity -= this.#onward.takeInto(batch, capacity - reserved);
    const acceptCapacity = Math.max(capacity, reserved);
    const taken = this.#accepts.takeInto(batch, acceptCapacity);
    this.#acceptDebt = Math.max(0, this.#acceptDebt - share) + Math.max(0, taken - acceptCapacity);
    return batch;
  }

  /** Removes and returns all commands. */
  takeAll(): T[] {
    const all: T[] = [];
    while (this.length > 0) all.push(...this.take());
    return all;
  }
}

/** The project of an accept, whose messages all belong to one project. 0 if the accept has no messages. */
function projectOfAccept({ method, args }: WriteCommand): number {
  const [first] = method === 'accept' ? args.messages : [];
  return first ? projectOf(first) : 0;
}
