/** Records the calls of all clients with their results, outside of everything that can crash. */
import type { FlowPin } from '../../src/engine/lanes/lanes.ts';
import type { DeadRetryOverride } from '../../src/engine/messages/dead-retry.ts';
import type { PublishCommand } from '../../src/engine/messages/publish-command.ts';
import type { CellId, Message, MessageId, Millis, ProjectId } from '../../src/engine/model.ts';
import type { ScheduleCommand } from '../../src/engine/schedules/commands.ts';

/**
 * The result of a call. `acked`: the server confirmed it. `rejected`: the server rejected it. `unknown`: the server died before
 * it responded, so the call may have taken effect.
 */
export type CallResult = 'pending' | 'acked' | 'rejected' | 'unknown';

export interface Call {
  result: CallResult;
  /** Elapsed time when the call was made. */
  startAtMs: Millis;
  /** Position in the trace, and elapsed time, when the response arrived. */
  endedAt: number;
  endedAtMs: Millis;
}

export interface Publish {
  /** Set for a project other than `PROJECT`, with the cell in which it lives. */
  projectId?: ProjectId;
  cellId?: CellId;
  /** The body of each command contains its `ref`, which logs and deliveries repeat. `refused`: over the limit of queues. */
  items: { ref: number; command: PublishCommand; id?: MessageId; deduplicated?: boolean; refused?: boolean }[];
}

/** Selects the messages to cancel: by id, or all with a label. */
export interface Cancel {
  ids?: MessageId[];
  label?: string;
}

export interface DeadAction {
  action: 'delete' | 'retry';
  dlqIds: string[];
  override?: DeadRetryOverride;
  /** The response to an acked retry. */
  ids?: MessageId[];
  /** Whether an acked retry had no effect because an entry was missing. */
  missing?: boolean;
}

/** An action on a queue. */
export type QueueAction = (
  | { action: 'save'; parallelism: number; isPaused: boolean }
  | { action: 'pause' | 'resume' | 'delete' }
) & {
  queueName: string;
  /** For an acked action: false if the queue did not exist or could not be created. */
  wasDone?: boolean;
};

/** An action on a flow-control key. */
export type KeyAction =
  | { action: 'pause' | 'resume' | 'reset'; key: string }
  | { action: 'pin'; key: string; pin: FlowPin }
  | { action: 'unpin'; key: string; parallelism: boolean; rate: boolean };

/** An action on a schedule. The bodies of its messages contain the `ref` of the command that created it. */
export type ScheduleAction = (
  | { action: 'create'; ref: number; command: ScheduleCommand }
  | { action: 'pause' | 'resume' | 'delete' }
) & {
  scheduleId: string;
  /** For an acked action: false if the schedule did not exist. */
  wasDone?: boolean;
};

/** A change of the endpoints of a URL group. One client makes all changes, one at a time. */
export interface GroupAction {
  action: 'add' | 'remove' | 'delete';
  groupName: string;
  urls: string[];
}

/**
 * A publish to a URL group, with the endpoints that got messages. The group was read between `startAtMs` and `readAtMs`.
 */
export interface GroupPublish {
  groupName: string;
  urls: string[];
  startAtMs: Millis;
  readAtMs: Millis;
}

/** A trigger of a schedule that the engine asked its store to save, with its messages in order. */
export interface Trigger {
  messages: Message[];
  /** For an acked trigger: whether its schedule had changed, so that nothing was saved. */
  isStale?: boolean;
}

export class Ledger {
  readonly publishes: (Publish & Call)[] = [];
  readonly cancels: (Cancel & Call)[] = [];
  /** The requests for an immediate attempt. */
  readonly immediateAttempts: ({ id: MessageId } & Call)[] = [];
  readonly deadCalls: (DeadAction & Call)[] = [];
  readonly queueCalls: (QueueAction & Call)[] = [];
  readonly keyCalls: (KeyAction & Call)[] = [];
  readonly scheduleCalls: (ScheduleAction & Call)[] = [];
  readonly groupCalls: (GroupAction & Call)[] = [];
  readonly groupPublishes: GroupPublish[] = [];
  readonly triggers: (Trigger & Call)[] = [];
  /** The number of the process that receives the next call. */
  currentProcess = 0;
  readonly #elapsedMs: () => Millis;
  /** The pending calls, with the number of the process that received each. */
  readonly #pending = new Map<Call, number>();
  #refs = 0;

  constructor(elapsedMs: () => Millis) {
    this.#elapsedMs = elapsedMs;
  }

  nextRef(): number {
    this.#refs += 1;
    return this.#refs;
  }

  /** Records a call that has just started. */
  start<T extends object>(list: (T & Call)[], action: T): T & Call {
    const startAtMs = this.#elapsedMs();
    const call: T & Call = { ...action, result: 'pending', startAtMs, endedAt: 0, endedAtMs: Infinity };
    list.push(call);
    this.#pending.set(call, this.currentProcess);
    return call;
  }

  /** Records the result of a call. Returns false, and records nothing, if the call was given up before. */
  end(call: Call, result: 'acked' | 'rejected' | 'unknown', at: number, atMs: Millis): boolean {
    if (!this.#pending.delete(call)) return false;
    call.result = result;
    call.endedAt = at;
    call.endedAtMs = atMs;
    return true;
  }

  /** Marks all pending calls of a dead process as unknown. */
  giveUp(process: number, at: number, atMs: Millis): void {
    for (const [call, asked] of this.#pending) {
      if (asked !== process) continue;
      this.#pending.delete(call);
      call.result = 'unknown';
      call.endedAt = at;
      call.endedAtMs = atMs;
    }
  }

  /** Whether a change of a queue or a key is pending. */
  get isLaneCallPending(): boolean {
    return [...this.queueCalls, ...this.keyCalls].some(({ result }) => result === 'pending');
  }

  /** The ids of all messages that were acknowledged. `ofOthers`: also those of other projects. */
  acknowledgedIds({ ofOthers = false } = {}): MessageId[] {
    const calls = this.publishes.filter(({ projectId }) => ofOthers || projectId === undefined);
    const published = calls.flatMap((call) => (call.result === 'acked' ? call.items : []));
    const revived = this.deadCalls.flatMap((call) => call.ids ?? []);
    return [...published.flatMap((item) => (item.id && !item.deduplicated ? [item.id] : [])), ...revived];
  }
}

/** The `ref` in a body made by `bodyOf`. */
export function refOf(body: Uint8Array): number {
  return Number(new TextDecoder().decode(body).split(' ')[0]);
}

/** Whether the body is that of a callback. No body that a client publishes begins like a callback. */
export function isCallback(body: Uint8Array): boolean {
  return body[0] === '{'.charCodeAt(0);
}

/** A body of at least `bytes` bytes that contains `ref`. */
export function bodyOf(ref: number, bytes: number): Uint8Array {
  return new TextEncoder().encode(`${ref} `.padEnd(bytes, '.'));
}
