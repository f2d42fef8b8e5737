/**
 * Which of the commands that wait go into the next transaction?
 *
 * First what others wait for at a deadline and what costs next to nothing. Then what moves on what was accepted: a server
 * with more to do than it can do delivers what it has before it takes more. Then accepts, each project in its turn, so that
 * one that sends a lot keeps nobody waiting. Of each batch a share is the accepts' own, so that they never starve.
 *
 * Commands of one class, and accepts of one project, keep their order. Between classes there is none to keep: whoever
 * needs one command done before another waits for the answer to the first.
 */
import { Fifo, ProjectTurns } from '../engine/project-turns.ts';
import { MESSAGE_AT } from './sql/columns.ts';
import type { StoredNewMessage } from './sql/rows.ts';
import { BATCH_COST_MAX, costOf } from './weight.ts';
import type { WriteCommand } from './writes.ts';

/** The part of a batch that accepts get however much else waits. */
const ACCEPT_SHARE = 1 / 4;

type CommandClass = 'urgent' | 'onward' | 'accept';

function classOf(command: WriteCommand): CommandClass {
  switch (command.method) {
    case 'accept':
      return command.args.messages.every(continuesRun) ? 'onward' : 'accept';
    // Late ones would have a worker declared dead, a healthy store called broken, or everything wait for a number.
    case 'beat':
    case 'dismissLate':
    case 'leave':
    case 'ping':
    case 'reserveNumbers':
      return 'urgent';
    default:
      return 'onward';
  }
}

/** A step of a run, a run that another has invoked, or the second phase of a trigger. */
function continuesRun({ entry, run }: StoredNewMessage): boolean {
  return entry !== undefined && (run === undefined || run.isBySdk || run.invoker !== null);
}

interface InLine {
  command: WriteCommand;
}

/** Pure: what is taken follows from what was put in, and in which order. */
export class BatchLine<T extends InLine> {
  readonly #costMax: number;
  readonly #urgent = new Fifo<T>();
  readonly #onward = new Fifo<T>();
  readonly #accepts = new ProjectTurns<T>();
  /** What accepts have had beyond the end of a batch, and owe to the others. */
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
    else this.#accepts.push(projectOf(command), entry, cost);
  }

  /** Takes out the next batch; empty only when nothing waits. The command that fills it may go beyond its end. */
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

/** All messages of an accept are of one project. */
function projectOf(command: WriteCommand): number {
  if (command.method !== 'accept') return 0;
  return command.args.messages[0]?.message[MESSAGE_AT.project_id] ?? 0;
}
