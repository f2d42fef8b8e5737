/**
 * Decides, in the transaction that saves a new message, whether the message starts in the slot that the worker has
 * reserved, or waits for its queue, its flow-control key or its project. Only this transaction knows the holders of lane
 * permits.
 */
import { type BacklogKey, backlogKey } from '../../../engine/lanes/backlog-key.ts';
import type { AcceptedState } from '../../../engine/messages/accepted.ts';
import type { WaitState } from '../../../engine/wait-state.ts';
import type { MessageEvents, WriteContext } from '../logs/log-writer.ts';
import { CONTENT_COLUMNS, MESSAGE_AT, MESSAGE_COLUMNS, type NewMessageRow } from '../messages/columns.ts';
import { countMessages } from '../messages/message-counts.ts';
import { codeOfLogState, type StoredNewMessage } from '../messages/rows.ts';
import { FlowLanes } from './flow-lanes.ts';
import { ProjectGate } from './project-gate.ts';
import { QueueLanes } from './queue-lanes.ts';
import { WAIT_STATE } from './wait-states.ts';

export type AdmittedState = Exclude<AcceptedState, 'dropped'>;

export class MessageAdmission {
  readonly #context: WriteContext;
  readonly #nowMs: number;
  readonly #queues: QueueLanes;
  readonly #flows: FlowLanes;
  readonly #gate: ProjectGate;

  constructor(context: WriteContext, nowMs: number) {
    this.#context = context;
    this.#nowMs = nowMs;
    this.#queues = new QueueLanes(context.tx);
    this.#flows = new FlowLanes(context.tx, nowMs);
    this.#gate = new ProjectGate(context.tx, context.limits.parallelismMax);
  }

  /** Loads the queues that `messages` name. */
  async loadQueues(messages: readonly StoredNewMessage[]): Promise<void> {
    const refs = messages.flatMap(({ message, queueName }) =>
      queueName === undefined ? [] : [{ projectId: message[MESSAGE_AT.project_id], name: queueName }],
    );
    if (refs.length > 0) await this.#queues.load(refs);
  }

  /** Creates the queue of a message if the queue is missing. Returns false if the project is at its limit of queues. */
  async hasQueue(
    { message, queueName }: StoredNewMessage,
    queuesMax = this.#context.limits.queuesMax,
  ): Promise<boolean> {
    if (queueName === undefined) return true;
    const projectId = message[MESSAGE_AT.project_id];
    if (this.#queues.find(projectId, queueName)) return true;
    return (await this.#queues.create(projectId, queueName, queuesMax, this.#nowMs)) !== undefined;
  }

  /** Loads the queues that `messages` name, and creates the missing queues without a limit. */
  async makeQueues(messages: readonly StoredNewMessage[]): Promise<void> {
    await this.loadQueues(messages);
    for (const message of messages) await this.hasQueue(message, 0);
  }

  /** Saves messages in a few statements and returns the state of each. The queues of the messages must be loaded. */
  async insert(newMessages: readonly StoredNewMessage[]): Promise<AdmittedState[]> {
    if (newMessages.length === 0) return [];
    const messages = newMessages.map(withOwnRow);
    const { tx, limits, logs, due } = this.#context;
    await this.#loadLimits(messages);
    const states = messages.map((message) => this.#admit(message));
    await this.#queues.save();
    if (limits.messagesPerDayMax > 0) await countMessages(tx, messages);
    await tx.insertMany(
      'messages',
      MESSAGE_COLUMNS,
      messages.map(({ message }) => message),
    );
    await tx.insertMany(
      'contents',
      CONTENT_COLUMNS,
      messages.map(({ content }) => content),
    );
    await logs.append(tx, messages.map(eventsOf));
    for (const [index, { message }] of messages.entries()) {
      if (states[index] === 'due') due.noteForOthers(message[MESSAGE_AT.due_at_ms]);
      else if (states[index] === 'origin') due.noteWaitingBacklog(backlogKeyOfRow(message));
    }
    await this.#flows.save(due);
    return states;
  }

  async #loadLimits(messages: readonly StoredNewMessage[]): Promise<void> {
    const refs = messages.flatMap(({ message, flow }) =>
      flow === undefined ? [] : [{ projectId: message[MESSAGE_AT.project_id], key: flow.key }],
    );
    if (refs.length > 0) await this.#flows.loadOrCreate(refs);
    await this.#gate.load(messages.map(({ message }) => message[MESSAGE_AT.project_id]));
  }

  /** Checks the queue, the key and the project, in this order. The message waits for the first one without capacity. */
  #admit({ message, queueName, flow }: StoredNewMessage): AdmittedState {
    const projectId = message[MESSAGE_AT.project_id];
    const isReady = message[MESSAGE_AT.due_at_ms] <= this.#nowMs;
    const isProposed = message[MESSAGE_AT.claim_token] !== null;
    const lane = flow && this.#flows.find(projectId, flow.key);
    if (flow) lane?.follow(flow, this.#nowMs);
    const queue = queueName === undefined ? undefined : this.#queues.find(projectId, queueName);
    if (queue) {
      const { position, hasPermit } = queue.enter();
      message[MESSAGE_AT.queue_id] = queue.id;
      message[MESSAGE_AT.queue_position] = position;
      if (!hasPermit) return makeWait(message, 'queue');
      message[MESSAGE_AT.queue_permit] = message[MESSAGE_AT.key];
    }
    if (lane) {
      if (!isProposed || lane.hasWaiting(this.#nowMs) || lane.releasesLeft(this.#nowMs) === 0) {
        if (isReady) lane.noteWaiting();
        return makeWait(message, 'flow');
      }
    }
    if (!isProposed) return message[MESSAGE_AT.wait_state] === WAIT_STATE.origin ? 'origin' : 'due';
    if (this.#gate.capacityOf(projectId) === 0 || this.#gate.hasWaiting(projectId)) {
      lane?.noteReleased();
      return makeWait(message, 'project');
    }
    lane?.start(this.#nowMs);
    this.#gate.start(projectId);
    return 'claimed';
  }
}

/** A copy of the row: a rolled-back transaction runs again with the same command, which must be unchanged. */
function withOwnRow(newMessage: StoredNewMessage): StoredNewMessage {
  return { ...newMessage, message: [...newMessage.message] };
}

function makeWait(message: StoredNewMessage['message'], state: WaitState): WaitState {
  message[MESSAGE_AT.claim_token] = null;
  message[MESSAGE_AT.worker] = null;
  message[MESSAGE_AT.claimed_at_ms] = null;
  message[MESSAGE_AT.wait_state] = WAIT_STATE[state];
  return state;
}

/** The events of the publish, and ACTIVE if the message starts at once. */
function eventsOf({ message, events }: StoredNewMessage): MessageEvents {
  const claimedAtMs = message[MESSAGE_AT.claimed_at_ms];
  return {
    key: message[MESSAGE_AT.key],
    projectId: message[MESSAGE_AT.project_id],
    runKey: message[MESSAGE_AT.run_key],
    events: claimedAtMs === null ? events : [...events, [claimedAtMs, codeOfLogState('ACTIVE')]],
    floorMs: 0,
  };
}

function backlogKeyOfRow(message: NewMessageRow): BacklogKey {
  return backlogKey(message[MESSAGE_AT.project_id], message[MESSAGE_AT.origin]);
}
