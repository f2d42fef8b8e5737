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
import type { ProjectId } from '../engine/model.ts';
import type { WriteCommand } from './batch.ts';
import { MESSAGE_AT } from './sql/rows.ts';
import { BATCH_COST_MAX, costOf } from './weight.ts';

/** The part of a batch that accepts get however much else waits. */
const ACCEPT_SHARE = 1 / 4;
/** Cost of the accepts that a project has in one turn, about. */
const TURN_COST = 8;

type CommandClass = 'urgent' | 'onward' | 'accept';

function classOf({ method }: WriteCommand): CommandClass {
  switch (method) {
    case 'accept':
      return 'accept';
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
    room -= this.#accepts.takeInto(batch, room);
    this.#acceptDebt = Math.max(0, this.#acceptDebt - share) + Math.max(0, -room);
    return batch;
  }

  /** Takes out all. */
  takeAll(): T[] {
    const all: T[] = [];
    while (this.length > 0) all.push(...this.take());
    return all;
  }
}

class Fifo<T> {
  readonly #entries: { entry: T; cost: number }[] = [];
  #cost = 0;

  get length(): number {
    return this.#entries.length;
  }

  /** Of all that wait. */
  get cost(): number {
    return this.#cost;
  }

  push(entry: T, cost: number): void {
    this.#entries.push({ entry, cost });
    this.#cost += cost;
  }

  /** Moves one after the other until their cost has reached `room`; returns their cost. */
  takeInto(batch: T[], room: number): number {
    let taken = 0;
    while (taken < room) {
      const first = this.#entries.shift();
      if (!first) break;
      batch.push(first.entry);
      taken += first.cost;
    }
    this.#cost -= taken;
    return taken;
  }
}

/** A line for each project. They take turns; who had more than a turn's worth waits until the others had as much. */
class ProjectTurns<T> {
  /** The first has its turn. `credit`: what it may still take in this turn; negative after a large command. */
  readonly #projects = new Map<ProjectId, { line: Fifo<T>; credit: number }>();
  #length = 0;
  #cost = 0;

  get length(): number {
    return this.#length;
  }

  get cost(): number {
    return this.#cost;
  }

  push(projectId: ProjectId, entry: T, cost: number): void {
    let project = this.#projects.get(projectId);
    if (!project) {
      project = { line: new Fifo(), credit: TURN_COST };
      this.#projects.set(projectId, project);
    }
    project.line.push(entry, cost);
    this.#length += 1;
    this.#cost += cost;
  }

  takeInto(batch: T[], room: number): number {
    const before = batch.length;
    let taken = 0;
    for (const [projectId, project] of this.#projects) {
      if (taken >= room || batch.length - before === this.#length) break;
      const { line } = project;
      const cost = line.takeInto(batch, Math.min(project.credit, room - taken));
      taken += cost;
      project.credit -= cost;
      if (line.length > 0 && project.credit > 0) break; // the batch is full, its turn goes on with the next one
      // To the end of the row, where the iteration comes by again.
      this.#projects.delete(projectId);
      if (line.length === 0 && project.credit >= 0) continue;
      project.credit += TURN_COST;
      this.#projects.set(projectId, project);
    }
    this.#length -= batch.length - before;
    this.#cost -= taken;
    return taken;
  }
}

/** All messages of an accept are of one project. */
function projectOf(command: WriteCommand): ProjectId {
  if (command.method !== 'accept') return 0;
  return (command.args.messages[0]?.message[MESSAGE_AT.project_id] as ProjectId | undefined) ?? 0;
}
