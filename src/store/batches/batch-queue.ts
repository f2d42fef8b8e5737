/**
 * Which of the waiting commands go into the next transaction?
 *
 * First those that others wait for at a deadline, and those that cost next to nothing. Then those that move accepted
 * messages on: a server with more work than it can do delivers what it has before it takes more. Then accepts. Projects
 * take turns, so that a project that sends a lot keeps no other project waiting. A share of each batch is reserved for
 * accepts, so that they never starve.
 *
 * Commands of one class, and accepts of one project, keep their order. Between classes there is no order: a caller that
 * needs one command done before another waits for the first answer.
 */
import { FairQueue, Fifo } from '../../engine/admission/fair-queue.ts';
import { classOf, traitsOf, type WriteCommand } from '../operations/all.ts';
import { projectOf, type StoredNewMessage, weightOf } from '../operations/messages/rows.ts';
import type { Weight } from '../operations/operation.ts';

/** Cost of one transaction, counted in rows of small messages. Longer transactions keep other commands waiting. */
export const BATCH_COST_MAX = 200;
/** This many bytes cost as much as one row: 4 MiB fill a transaction. */
const BYTES_PER_ROW = (4 * 1024 * 1024) / BATCH_COST_MAX;

/** At least 1. */
export function costOf(command: WriteCommand): number {
  return cost(traitsOf(command).weight(command.args));
}

/** At least 1. */
export function costOfMessages(messages: readonly StoredNewMessage[]): number {
  return cost(weightOf(messages));
}

function cost({ rows, bytes = 0 }: Weight): number {
  return Math.max(1, rows, Math.ceil(bytes / BYTES_PER_ROW));
}

/** The part of a batch that accepts get however much else waits. */
const ACCEPT_SHARE = 1 / 4;

interface InLine {
  command: WriteCommand;
}

/** Pure: the result depends only on which commands were put in, and in which order. */
export class BatchQueue<T extends InLine> {
  readonly #costMax: number;
  readonly #urgent = new Fifo<T>();
  readonly #onward = new Fifo<T>();
  readonly #accepts = new FairQueue<T>();
  /** Cost of accepts that went beyond the end of earlier batches; the next batches give accepts so much less. */
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
    else this.#accepts.push(turnOf(command), entry, cost);
  }

  /** Takes out the next batch; empty only when nothing waits. Its last command may exceed the cost of a batch. */
  take(): T[] {
    const batch: T[] = [];
    const share = Math.floor(this.#costMax * ACCEPT_SHARE);
    const reserved = Math.min(Math.max(0, share - this.#acceptDebt), this.#accepts.cost);
    let room = this.#costMax;
    room -= this.#urgent.takeInto(batch, room);
    room -= this.#onward.takeInto(batch, room - reserved);
    const ofAccepts = Math.max(room, reserved);
    const taken = this.#accepts.takeInto(batch, ofAccepts);
    this.#acceptDebt = Math.max(0, this.#acceptDebt - share) + Math.max(0, taken - ofAccepts);
    return batch;
  }

  /** Takes out all. */
  takeAll(): T[] {
    const all: T[] = [];
    while (this.length > 0) all.push(...this.take());
    return all;
  }
}

/** The project whose turn an accept takes: all its messages are of one project. */
function turnOf({ method, args }: WriteCommand): number {
  const [first] = method === 'accept' ? args.messages : [];
  return first ? projectOf(first) : 0;
}
