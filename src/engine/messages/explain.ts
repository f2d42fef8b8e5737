/** Why an unfinished message waits (finished ones: `explain-finished.ts`), in one sentence and in fields (P14). Pure. */
import type { Held } from '../lanes/in-flight.ts';
import type { FlowKey, FlowKeyState, QueueBlocker } from '../lanes/lanes.ts';
import { startsLeft } from '../lanes/lanes.ts';
import type { Backlog, KeyLine, Line, LiveMessage, QueueLine, UnfinishedMessage } from '../lists/unfinished.ts';
import type { Millis } from '../model.ts';

/** Why a message is not finished. docs/errors.md is made of these comments. */
export const UNFINISHED_REASONS = [
  /** Its publisher or its schedule asked for the delay. Remedy: none is needed; `waypost messages retry <id>` does not wait. */
  'delayed',
  /** An attempt failed, of what the sentence ends with. Remedy: mend that; then `waypost messages retry <id>` does not wait for the time. */
  'retrying',
  /**
   * The code of its workflow no longer fits the steps that its run has in its journal. Remedy: deploy code that does, and the run goes on by
   * itself, or at once with `waypost runs resume`; see [deploying changed code](workflows.md#deploying-changed-code).
   */
  'parked',
  /** It is to go out at once. Remedy: if it stays so, the workers are full or gone: `waypost_in_flight` and `waypost_workers` of the [metrics](metrics.md) say which. */
  'due',
  /** Its endpoint has as many attempts as it may. Remedy: answer sooner, or raise `WAYPOST_IN_FLIGHT_PER_ORIGIN_MAX`. */
  'endpoint_busy',
  /** Its endpoint did not answer lately, and others like it have their share. Remedy: fix the endpoint, or raise `WAYPOST_SILENT_MAX`. */
  'endpoint_unproven',
  /** Its project has its share of the attempts of this server. Remedy: answer sooner, or add workers. */
  'project_busy',
  /**
   * Other messages of its queue are ahead of it. Remedy: where the sentence names a message that blocks the queue, fix what that failed of, then
   * `waypost messages retry <id>`, or cancel it; otherwise raise the queue's parallelism.
   */
  'queued',
  /** Somebody paused its queue. Remedy: `waypost queues resume <name>`. */
  'queue_paused',
  /** Somebody paused its flow-control key. Remedy: `waypost keys resume <name>`. */
  'key_paused',
  /** Its flow-control key has as many attempts at a time as it may. Remedy: raise its parallelism, for good with `waypost keys pin`. */
  'key_full',
  /** Its flow-control key has started as many in this period as it may. Remedy: raise its rate, for good with `waypost keys pin`. */
  'key_rate',
  /** Its flow-control key has room. Remedy: none is needed: it goes out in a moment. */
  'key_turn',
  /** Its project has as many attempts in flight as the operator lets it have. Remedy: raise `WAYPOST_PARALLELISM_MAX`. */
  'parallelism',
  /** It is being sent now. Remedy: if that takes long, look at the endpoint: it has not answered yet. */
  'attempting',
  /** Somebody cancelled it while it was being sent. Remedy: none is needed: it ends with its attempt. */
  'cancelling',
] as const;

/** All reasons, those of finished messages too. */
export const REASONS = [...UNFINISHED_REASONS, 'delivered', 'dead', 'cancelled'] as const;

export interface Explanation {
  reason: (typeof REASONS)[number];
  sentence: string;
  /** When the attempt began, for `attempting` and `cancelling`. */
  sinceMs?: Millis;
  /** When it becomes due, or became so. */
  dueAtMs?: Millis;
  /** When it was finished. */
  atMs?: Millis;
  /** Of a dead message, while the DLQ has it. */
  dlqId?: string;
  /** Retries already made. */
  retried: number;
  queueName?: string;
  /** Messages of its queue that go before it, for `queued`. */
  ahead?: number;
  /** Which message blocks its queue, for `queued`. */
  blockedBy?: QueueBlocker;
  flowControlKey?: string;
}

type Reason = Omit<Explanation, 'retried'>;

interface Known {
  /** What keeps the messages of its line from starting, as this worker knows it. */
  held?: Held | undefined;
  /** What came of its last attempt that failed. */
  failure?: string | undefined;
}

/** Says what `live` waits for at `nowMs`. */
export function explain(live: LiveMessage, nowMs: Millis, known: Known = {}): Explanation {
  return { ...reasonOf(live, nowMs, known), retried: live.retried };
}

/** Whether it waits for a retry, so that its last failure belongs to the explanation. */
export function isRetrying({ state, retried, isParked }: LiveMessage, nowMs: Millis): boolean {
  return (state.kind === 'due' || state.kind === 'flow') && retried > 0 && !isParked && state.dueAtMs > nowMs;
}

function reasonOf(live: LiveMessage, nowMs: Millis, { held, failure }: Known): Reason {
  const { state, message } = live;
  switch (state.kind) {
    case 'claimed':
      return explainAttempt(live, state.claimedAtMs);
    case 'origin':
      return { ...explainLine(message.origin, held), dueAtMs: state.dueAtMs };
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
        sentence: 'Waits until an attempt in flight ends: its project has as many as it may (parallelism_max).',
        dueAtMs: state.dueAtMs,
      };
  }
}

/** Why the messages in the line of an origin wait. */
export function explainLine(origin: string, held: Held | undefined): Pick<Explanation, 'reason' | 'sentence'> {
  const line = `Waits in the line of ${origin}`;
  switch (held) {
    case 'project':
      return {
        reason: 'project_busy',
        sentence: `${line} until an attempt in flight ends: its project has its share of them.`,
      };
    case 'unproven':
      return {
        reason: 'endpoint_unproven',
        sentence: `${line}, which has not answered lately: its project has its share of attempts in flight to such endpoints.`,
      };
    default:
      return {
        reason: 'endpoint_busy',
        sentence: `${line} until one of its attempts in flight ends or there is room for another.`,
      };
  }
}

function explainAttempt({ cancelRequested }: LiveMessage, sinceMs: Millis): Reason {
  const since = new Date(sinceMs).toISOString();
  if (!cancelRequested) return { reason: 'attempting', sentence: `Is being attempted since ${since}.`, sinceMs };
  const sentence = `A cancel was asked for while it is being attempted (since ${since}); it will not be retried.`;
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
    return { reason: 'due', sentence: `Is due since ${due} and goes out as soon as a worker has room.` };
  if (isParked) {
    const sentence = `Is parked, since the code of its workflow has changed, and is tried again at ${due}.`;
    return { reason: 'parked', sentence };
  }
  if (retried > 0) {
    const retry = `Waits for retry ${retried}, planned for ${due}`;
    const sentence = failure ? `${retry}: ${failure}.` : `${retry}.`;
    return { reason: 'retrying', sentence };
  }
  return { reason: 'delayed', sentence: `Is delayed until ${due}, as its publisher asked.` };
}

function explainQueue(
  { message }: LiveMessage,
  { isPaused, hasSlot, ahead, parallelism, blockedBy }: Extract<LiveMessage['state'], { kind: 'queue' }>,
): Reason {
  const queueName = message.settings.queueName ?? '';
  const before = ahead === undefined ? 'others' : ahead === 1 ? '1 message' : `${ahead} messages`;
  const place = { queueName, ...(ahead !== undefined && { ahead }) };
  if (isPaused) {
    const position = hasSlot ? '; it was started' : ahead === undefined ? '' : `; ${before} before it`;
    return { reason: 'queue_paused', sentence: `Its queue ${queueName} is paused${position}.`, ...place };
  }
  const sentence = `Waits in queue ${queueName} behind ${before}; the queue works on ${parallelism} at a time.`;
  if (!blockedBy) return { reason: 'queued', sentence, ...place };
  const until = new Date(blockedBy.dueAtMs).toISOString();
  const blocked = `${sentence} It is blocked until ${until}, when ${blockedBy.messageId} is due.`;
  return { reason: 'queued', sentence: blocked, blockedBy, ...place };
}

/** Why the messages of a key that are due wait. */
export function explainKey(
  key: FlowKeyState & Partial<FlowKey>,
  nowMs: Millis,
): Pick<Explanation, 'reason' | 'sentence'> {
  const name = `flow-control key ${key.key}`;
  if (key.isPaused) return { reason: 'key_paused', sentence: `The ${name} is paused.` };
  if (key.parallelism !== undefined && key.inFlight >= key.parallelism) {
    const waiting = key.waitListSize === undefined ? '' : `; ${key.waitListSize} wait`;
    const sentence = `The ${name} has ${key.inFlight} of ${key.parallelism} attempts in flight${waiting}.`;
    return { reason: 'key_full', sentence };
  }
  const { rate, periodS, rateCount, periodStartedAtMs: startedAtMs } = key;
  const window = { rate: rate ?? null, periodS, startedAtMs: startedAtMs ?? null, count: rateCount };
  if (startedAtMs !== undefined && startsLeft(window, nowMs) === 0) {
    const end = new Date(startedAtMs + periodS * 1000).toISOString();
    const sentence = `The ${name} has started ${rateCount} of ${rate} attempts in its period, which ends ${end}.`;
    return { reason: 'key_rate', sentence };
  }
  return { reason: 'key_turn', sentence: `The ${name} has room; its messages go out when its turn comes.` };
}

/** An unfinished message with why it waits. */
export interface ExplainedMessage extends Pick<UnfinishedMessage, 'message' | 'standing' | 'bodyBytes'> {
  explanation: Explanation;
}

/** The backlog, with what keeps each line from going on, of the origins as this worker knows it. */
export interface ExplainedBacklog extends Omit<Backlog, 'origins' | 'queues' | 'keys'> {
  origins: (Explained<Backlog['origins'][number]> & {
    /** Its attempts ended without an answer so often that it may have only the fewest at a time. */
    isHeldBack: boolean;
  })[];
  queues: Explained<QueueLine>[];
  /** Without those whose messages go out at their turn. */
  keys: Explained<KeyLine>[];
}

type Explained<L extends Line> = L & Pick<Explanation, 'reason'>;
