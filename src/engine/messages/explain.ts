/**
 * Explains why an unfinished message waits, in one sentence and in fields (P14). Pure. For finished ones: `explain-finished.ts`.
 */
import type { LimitReason } from '../lanes/in-flight.ts';
import type { FlowKey, FlowKeyState, QueueBlocker } from '../lanes/lanes.ts';
import { startsLeft } from '../lanes/lanes.ts';
import type {
  Backlog,
  KeyWaitList,
  LiveMessage,
  QueueWaitList,
  UnfinishedMessage,
  WaitList,
} from '../lists/unfinished.ts';
import type { MessageId, Millis } from '../model.ts';

/** Why a message is not finished. docs/errors.md is generated from these comments. */
export const UNFINISHED_REASONS = [
  /** The publisher or the schedule asked for a delay. Remedy: none; `waypost messages retry <id>` sends it now. */
  'delayed',
  /**
   * The last attempt failed; the sentence ends with the cause.
   * Remedy: fix the cause; `waypost messages retry <id>` then sends it now.
   */
  'retrying',
  /**
   * The code of the workflow no longer fits the recorded steps of the run.
   * Remedy: deploy code that fits; the run then continues by itself, or at once with `waypost runs resume`; see [deploying
   * changed code](workflows.md#deploying-changed-code).
   */
  'parked',
  /**
   * It is due and waits for a worker.
   * Remedy: none; if it stays due, the workers are saturated or gone: `waypost_in_flight` and `waypost_workers` in the
   * [metrics](metrics.md) say which.
   */
  'due',
  /**
   * Its endpoint has reached its limit of attempts in flight.
   * Remedy: respond sooner, or raise `WAYPOST_IN_FLIGHT_PER_ORIGIN_MAX`.
   */
  'endpoint_busy',
  /**
   * Its endpoint has not responded recently, and the attempts to such endpoints have used up their share.
   * Remedy: fix the endpoint, or raise `WAYPOST_SILENT_MAX`.
   */
  'endpoint_unproven',
  /** Its project has used up its share of the attempts of this server. Remedy: respond sooner, or add workers. */
  'project_busy',
  /**
   * Other messages of its queue are ahead of it.
   * Remedy: if the sentence names a message that blocks the queue, fix its cause, then `waypost messages retry <id>`, or cancel
   * it; otherwise raise the parallelism of the queue.
   */
  'queued',
  /** Its queue is paused. Remedy: `waypost queues resume <name>`. */
  'queue_paused',
  /** Its flow-control key is paused. Remedy: `waypost keys resume <name>`. */
  'key_paused',
  /**
   * Its flow-control key has reached its parallelism.
   * Remedy: raise the parallelism, permanently with `waypost keys pin`.
   */
  'key_full',
  /**
   * Its flow-control key has reached its rate for this period.
   * Remedy: raise the rate, permanently with `waypost keys pin`.
   */
  'key_rate',
  /** Its flow-control key has capacity; the message is about to be sent. Remedy: none. */
  'key_turn',
  /**
   * Its project has reached the limit of attempts in flight that the operator has set.
   * Remedy: raise `WAYPOST_PARALLELISM_MAX`.
   */
  'parallelism',
  /** An attempt is in flight. Remedy: if it takes long, check the endpoint, which has not responded yet. */
  'attempting',
  /** It was cancelled during an attempt. Remedy: none; it ends with the attempt. */
  'cancelling',
] as const;

/** All reasons, including the reasons of finished messages. */
export const REASONS = [...UNFINISHED_REASONS, 'delivered', 'dead', 'cancelled'] as const;

export interface Explanation {
  reason: (typeof REASONS)[number];
  sentence: string;
  /** When the attempt started. Present for `attempting` and `cancelling`. */
  sinceMs?: Millis;
  /** When the message becomes due, or became due. */
  dueAtMs?: Millis;
  /** When the message was finished. */
  atMs?: Millis;
  /** The DLQ id of a dead message. Present while the message is in the DLQ. */
  dlqId?: string;
  /** Retries already made. */
  retried: number;
  queueName?: string;
  /** For `queued`: the number of messages ahead of this one in its queue. */
  ahead?: number;
  /** For `queued`: the message that blocks the queue. */
  blockedBy?: QueueBlocker;
  flowControlKey?: string;
  /** The latest replays of the message, newest first; absent: none. */
  replays?: MessageId[];
}

type Reason = Omit<Explanation, 'retried'>;

interface ExplainContext {
  /** The limit that keeps the messages of the endpoint backlog from starting, as far as this worker knows. */
  limitReason?: LimitReason | undefined;
  /** The error of the last failed attempt of the message. */
  failure?: string | undefined;
}

/** Explains why `live` waits at `nowMs`. */
export function explain(live: LiveMessage, nowMs: Millis, context: ExplainContext = {}): Explanation {
  return { ...reasonOf(live, nowMs, context), retried: live.retried };
}

/** Whether the message waits for a retry. If so, the explanation includes the last failure of the message. */
export function isRetrying({ state, retried, isParked }: LiveMessage, nowMs: Millis): boolean {
  return (state.kind === 'due' || state.kind === 'flow') && retried > 0 && !isParked && state.dueAtMs > nowMs;
}

function reasonOf(live: LiveMessage, nowMs: Millis, { limitReason, failure }: ExplainContext): Reason {
  const { state, message } = live;
  switch (state.kind) {
    case 'claimed':
      return explainAttempt(live, state.claimedAtMs);
    case 'origin':
      return { ...explainBacklog(message.origin, limitReason), dueAtMs: state.dueAtMs };
    case 'due':
      return { ...explainDueTime(live, state.dueAtMs, nowMs, failure), dueAtMs: state.dueAtMs };
    case 'queue':
      return { ...explainQueue(live, state), dueAtMs: state.dueAtMs };
    case 'flow': {
      const isReady = state.dueAtMs <= nowMs;
      const reason = isReady ? explainKey(state.key, nowMs) : explainDueTime(live, state.dueAtMs, nowMs, failure);
      return { ...reason, dueAtMs: state.dueAtMs, flowControlKey: state.key.key };
    }
    case 'project':
      return {
        reason: 'parallelism',
        sentence: 'Waits until an attempt in flight ends: its project has reached its limit (parallelism_max).',
        dueAtMs: state.dueAtMs,
      };
  }
}

/** Why the messages of an endpoint backlog wait. */
export function explainBacklog(
  origin: string,
  limitReason: LimitReason | undefined,
): Pick<Explanation, 'reason' | 'sentence'> {
  const waits = `Waits for a delivery slot for ${origin}`;
  switch (limitReason) {
    case 'project':
      return { reason: 'project_busy', sentence: `${waits}: its project has used up its share of the slots.` };
    case 'unknown':
      return {
        reason: 'endpoint_unproven',
        sentence: `${waits}, which has not responded recently: its project has used up its share of the slots for such endpoints.`,
      };
    default:
      return {
        reason: 'endpoint_busy',
        sentence: `${waits} until one of its attempts in flight ends or its limit grows.`,
      };
  }
}

function explainAttempt({ cancelRequested }: LiveMessage, sinceMs: Millis): Reason {
  const since = new Date(sinceMs).toISOString();
  if (!cancelRequested)
    return { reason: 'attempting', sentence: `An attempt has been in flight since ${since}.`, sinceMs };
  const sentence = `Cancelled while an attempt is in flight (since ${since}); it will not be retried.`;
  return { reason: 'cancelling', sentence, sinceMs };
}

function explainDueTime(
  { retried, isParked }: LiveMessage,
  dueAtMs: Millis,
  nowMs: Millis,
  failure: string | undefined,
): Reason {
  const due = new Date(dueAtMs).toISOString();
  if (dueAtMs <= nowMs)
    return { reason: 'due', sentence: `Due since ${due}; waits for a worker with a free delivery slot.` };
  if (isParked) {
    const sentence = `Parked because the code of its workflow has changed; the next attempt is at ${due}.`;
    return { reason: 'parked', sentence };
  }
  if (retried > 0) {
    const retry = `Waits for retry ${retried} at ${due}`;
    const sentence = failure ? `${retry}: ${failure}.` : `${retry}.`;
    return { reason: 'retrying', sentence };
  }
  return { reason: 'delayed', sentence: `Delayed until ${due}, as its publisher requested.` };
}

function explainQueue(
  { message }: LiveMessage,
  { isPaused, hasPermit, ahead, parallelism, blockedBy }: Extract<LiveMessage['state'], { kind: 'queue' }>,
): Reason {
  const queueName = message.settings.queueName ?? '';
  const before = ahead === undefined ? 'other messages' : ahead === 1 ? '1 message' : `${ahead} messages`;
  const queue = { queueName, ...(ahead !== undefined && { ahead }) };
  if (isPaused) {
    const position = hasPermit ? '; its delivery has started' : ahead === undefined ? '' : `; ${before} ahead of it`;
    return { reason: 'queue_paused', sentence: `Its queue ${queueName} is paused${position}.`, ...queue };
  }
  const sentence = `Waits in queue ${queueName} behind ${before} (parallelism ${parallelism}).`;
  if (!blockedBy) return { reason: 'queued', sentence, ...queue };
  const until = new Date(blockedBy.dueAtMs).toISOString();
  const blocked = `${sentence} The queue is blocked until ${until}, when ${blockedBy.messageId} is due.`;
  return { reason: 'queued', sentence: blocked, blockedBy, ...queue };
}

/** Why the due messages of a flow-control key wait. */
export function explainKey(
  key: FlowKeyState & Partial<FlowKey>,
  nowMs: Millis,
): Pick<Explanation, 'reason' | 'sentence'> {
  const name = `flow-control key ${key.key}`;
  if (key.isPaused) return { reason: 'key_paused', sentence: `The ${name} is paused.` };
  if (key.parallelism !== undefined && key.inFlight >= key.parallelism) {
    const waiting = key.waitListSize === undefined ? '' : `; ${key.waitListSize} waiting`;
    const sentence = `The ${name} has ${key.inFlight} of ${key.parallelism} attempts in flight${waiting}.`;
    return { reason: 'key_full', sentence };
  }
  const { rate, periodS, rateCount, periodStartedAtMs: startedAtMs } = key;
  const window = { rate: rate ?? null, periodS, startedAtMs: startedAtMs ?? null, count: rateCount };
  if (startedAtMs !== undefined && startsLeft(window, nowMs) === 0) {
    const end = new Date(startedAtMs + periodS * 1000).toISOString();
    const sentence = `The ${name} has started ${rateCount} of ${rate} attempts in its period, which ends at ${end}.`;
    return { reason: 'key_rate', sentence };
  }
  return { reason: 'key_turn', sentence: `The ${name} has capacity; its next message is about to be sent.` };
}

/** An unfinished message with the reason why it waits. */
export interface ExplainedMessage extends Pick<UnfinishedMessage, 'message' | 'unfinishedState' | 'bodyBytes'> {
  explanation: Explanation;
}

/** The backlog with the limit for which each wait list waits. For origins, the limit is the one on this worker. */
export interface ExplainedBacklog extends Omit<Backlog, 'origins' | 'queues' | 'keys'> {
  origins: (Explained<Backlog['origins'][number]> & {
    /** Whether so many attempts to the origin ended without a response that the origin has the smallest window. */
    isHeldBack: boolean;
  })[];
  queues: Explained<QueueWaitList>[];
  /** Without keys whose messages are about to be sent. */
  keys: Explained<KeyWaitList>[];
}

type Explained<L extends WaitList> = L & Pick<Explanation, 'reason'>;
