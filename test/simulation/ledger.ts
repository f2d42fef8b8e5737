/** What the clients asked for and what they heard, kept outside of everything that can crash. */
import type { FlowPin } from '../../src/engine/lanes/lanes.ts';
import type { DeadRetryOverride } from '../../src/engine/messages/dead-retry.ts';
import type { PublishCommand } from '../../src/engine/messages/publish-command.ts';
import type { CellId, Message, MessageId, Millis, ProjectId } from '../../src/engine/model.ts';
import type { ScheduleCommand } from '../../src/engine/schedules/commands.ts';

/**
 * `acked`: the server said yes. `rejected`: it said no. `unknown`: it died before it answered, so that either may be
 * true.
 */
export type Fortune = 'pending' | 'acked' | 'rejected' | 'unknown';

export interface Call {
  fortune: Fortune;
  /** Elapsed time when it was made. */
  begunAtMs: Millis;
  /** Position in the trace, and elapsed time, when the answer was heard. */
  endedAt: number;
  endedAtMs: Millis;
}

export interface Publish {
  /** Each command's body says its `ref`, which finds it again in logs and deliveries. Refused: one queue too many. */
  /** Of another project than the one that everything else is about, and the cell in which it lives. */
  projectId?: ProjectId;
  cellId?: CellId;
  items: { ref: number; command: PublishCommand; id?: MessageId; deduplicated?: boolean; refused?: boolean }[];
}

/** Which messages a cancel was asked for: by id, or all with a label. */
export interface Cancel {
  ids?: MessageId[];
  label?: string;
}

export interface DeadAction {
  action: 'delete' | 'retry';
  dlqIds: string[];
  override?: DeadRetryOverride;
  /** Answer of an acked retry. */
  ids?: MessageId[];
  /** Answer of an acked retry when an entry was gone: nothing was done. */
  missing?: boolean;
}

/** What was done to a queue as a whole. */
export type QueueAction = (
  | { action: 'save'; parallelism: number; isPaused: boolean }
  | { action: 'pause' | 'resume' | 'delete' }
) & {
  queueName: string;
  /** Of an acked one: false when there was no such queue, or none could be made. */
  wasDone?: boolean;
};

/** What was done to a flow-control key as a whole. */
export type KeyAction =
  | { action: 'pause' | 'resume' | 'reset'; key: string }
  | { action: 'pin'; key: string; pin: FlowPin }
  | { action: 'unpin'; key: string; parallelism: boolean; rate: boolean };

/** What was done to a schedule. Its messages' bodies say the `ref` of the command that planned them. */
export type ScheduleAction = (
  | { action: 'create'; ref: number; command: ScheduleCommand }
  | { action: 'pause' | 'resume' | 'delete' }
) & {
  scheduleId: string;
  /** Of an acked one: false when there was no such schedule. */
  wasDone?: boolean;
};

/** What was done to the endpoints of a URL group: one client does it all, a call after the other. */
export interface GroupAction {
  action: 'add' | 'remove' | 'delete';
  groupName: string;
  urls: string[];
}

/** A publish to a URL group: of which endpoints it made messages, having read the group between the two times. */
export interface GroupPublish {
  groupName: string;
  urls: string[];
  begunAtMs: Millis;
  readAtMs: Millis;
}

/** A schedule's way on to its next time, as the engine asked its store for it: with these messages, in this order. */
export interface Trigger {
  messages: Message[];
  /** Of an acked one. */
  isStale?: boolean;
}

export class Ledger {
  readonly publishes: (Publish & Call)[] = [];
  readonly cancels: (Cancel & Call)[] = [];
  /** Messages that were to be attempted at once. */
  readonly hastened: ({ id: MessageId } & Call)[] = [];
  readonly deadCalls: (DeadAction & Call)[] = [];
  readonly queueCalls: (QueueAction & Call)[] = [];
  readonly keyCalls: (KeyAction & Call)[] = [];
  readonly scheduleCalls: (ScheduleAction & Call)[] = [];
  readonly groupCalls: (GroupAction & Call)[] = [];
  readonly groupPublishes: GroupPublish[] = [];
  readonly triggers: (Trigger & Call)[] = [];
  /** Number of the process that whoever makes the next call has turned to. */
  turnedTo = 0;
  readonly #elapsedMs: () => Millis;
  /** Each with the process that was asked. */
  readonly #pending = new Map<Call, number>();
  #refs = 0;

  /** `elapsedMs` says how much time has passed. */
  constructor(elapsedMs: () => Millis) {
    this.#elapsedMs = elapsedMs;
  }

  nextRef(): number {
    this.#refs += 1;
    return this.#refs;
  }

  /** Notes a call that is now under way. */
  begin<T extends object>(list: (T & Call)[], asked: T): T & Call {
    const begunAtMs = this.#elapsedMs();
    const call: T & Call = { ...asked, fortune: 'pending', begunAtMs, endedAt: 0, endedAtMs: Infinity };
    list.push(call);
    this.#pending.set(call, this.turnedTo);
    return call;
  }

  /** Notes the answer; ignored when the caller had given up already. Answers whether it counted. */
  end(call: Call, fortune: 'acked' | 'rejected' | 'unknown', at: number, atMs: Millis): boolean {
    if (!this.#pending.delete(call)) return false;
    call.fortune = fortune;
    call.endedAt = at;
    call.endedAtMs = atMs;
    return true;
  }

  /** The process is gone: whoever still waits for it will never know. */
  giveUp(process: number, at: number, atMs: Millis): void {
    for (const [call, asked] of this.#pending) {
      if (asked !== process) continue;
      this.#pending.delete(call);
      call.fortune = 'unknown';
      call.endedAt = at;
      call.endedAtMs = atMs;
    }
  }

  /** Whether somebody waits for a change to a queue or a key. */
  get isLaneCallPending(): boolean {
    return [...this.queueCalls, ...this.keyCalls].some(({ fortune }) => fortune === 'pending');
  }

  /** Ids of all messages that some client knows to exist; those of other projects only if they are wanted. */
  knownIds({ ofOthers = false } = {}): MessageId[] {
    const calls = this.publishes.filter(({ projectId }) => ofOthers || projectId === undefined);
    const published = calls.flatMap((call) => (call.fortune === 'acked' ? call.items : []));
    const revived = this.deadCalls.flatMap((call) => call.ids ?? []);
    return [...published.flatMap((item) => (item.id && !item.deduplicated ? [item.id] : [])), ...revived];
  }
}

/** The `ref` in a body made by `bodyOf`. */
export function refOf(body: Uint8Array): number {
  return Number(new TextDecoder().decode(body).split(' ')[0]);
}

/** Whether a body is a callback's: clients publish none that looks like one. */
export function isCallback(body: Uint8Array): boolean {
  return body[0] === '{'.charCodeAt(0);
}

/** A body of about `bytes` bytes that says `ref`. */
export function bodyOf(ref: number, bytes: number): Uint8Array {
  return new TextEncoder().encode(`${ref} `.padEnd(bytes, '.'));
}
