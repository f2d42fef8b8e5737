/** Explains why a run does not advance, or how it has ended, in one sentence and in fields (P14). Pure. */
import { maskPassword } from '../../../protocol/urls/masked-url.ts';
import type { HistoryEntry, LoggedRun, RunHistory } from '../../../workflow/history.ts';
import type { RunLog } from '../../../workflow/run-log.ts';
import type { StepInfo } from '../../../workflow/step-info.ts';
import { groupEntries, type StepEntries } from '../../../workflow/step-summaries.ts';
import type { LiveMessage } from '../../lists/unfinished.ts';
import { type Explanation, explain } from '../../messages/explain.ts';
import type { Millis } from '../../model.ts';

/** Reasons that only runs have. docs/errors.md is generated from these comments. */
type RunReason =
  /** A step sleeps. Remedy: none. */
  | 'sleeping'
  /** A step waits for an event. Remedy: `waypost notify <event>`, or wait for its deadline. */
  | 'waiting'
  /** A step waits for another run. Remedy: run `waypost explain` for that run. */
  | 'invoked'
  /**
   * The endpoint responded with 200 without publishing a step or ending the run, so nothing will call it again.
   * Remedy: check the log of the app at that time, then cancel the run and start it again. Either something responds instead of the
   * workflow library, or the app publishes its steps to another server: its `QSTASH_URL` must name this one.
   */
  | 'stuck'
  /** Its function returned. Remedy: none. */
  | 'succeeded'
  /** A message of the run is dead. Remedy: fix the step that the text names, then `waypost runs resume`. */
  | 'failed';

export interface RunExplanation {
  /** The reason of the message that will continue the run, or of the run's own wait. */
  reason: Explanation['reason'] | RunReason;
  sentence: string;
  runId: string;
  createdAtMs: Millis;
  /** The number of other steps for which the run waits. */
  others: number;
  stepId?: number;
  stepName?: string;
  stepType?: string;
  messageId?: string;
  /** When the attempt started, if there is one. */
  sinceMs?: Millis;
  /** When the run continues, or was due to continue. */
  dueAtMs?: Millis;
  retried?: number;
  flowControlKey?: string;
  /** The event. Present if the reason is `waiting`. */
  eventId?: string;
  /** The URL of a call, or of the invoked run. */
  url?: string;
  /** When the run ended. */
  atMs?: Millis;
  /** Present for a failed run while it is in the DLQ. */
  dlqId?: string;
  /** The invoked run. Present if the reason is `invoked`. */
  invokedRunId?: string;
}

/** An explained message or wait that will continue the run. */
type RunProgress = Omit<RunExplanation, 'runId' | 'createdAtMs' | 'others'>;

/** The maximum of messages of one run whose wait states are looked up. */
const LOOKED_UP_MAX = 16;

/** The entries whose unfinished messages will continue the run first. The caller looks up these messages. */
export function liveEntriesOf({ entries }: RunHistory): HistoryEntry[] {
  return entries
    .filter(({ pending }) => pending !== undefined)
    .sort((a, b) => Number(b.pending?.isInFlight) - Number(a.pending?.isInFlight) || dueOf(a) - dueOf(b))
    .slice(0, LOOKED_UP_MAX);
}

function dueOf({ pending }: HistoryEntry): Millis {
  return pending?.dueAtMs ?? Infinity;
}

/** Explains an active run at `nowMs`. `live`: the messages of `liveEntriesOf` that are still unfinished, by id. */
export function explainActive(
  history: RunHistory,
  live: ReadonlyMap<string, LiveMessage>,
  nowMs: Millis,
): RunExplanation {
  const steps = groupEntries(history.entries).flatMap((group) => group.steps);
  const stepByKey = new Map(steps.flatMap((step) => Object.values(step.byKind).map((entry) => [entry.key, step])));
  const messages = liveEntriesOf(history).flatMap((entry) => {
    const liveMessage = live.get(entry.message.id);
    return liveMessage ? causeOfMessage(entry, stepByKey.get(entry.key)?.info, liveMessage, nowMs) : [];
  });
  const waits = steps.flatMap((step) => causeOfRecord(step) ?? []);
  waits.sort((a, b) => (a.dueAtMs ?? Infinity) - (b.dueAtMs ?? Infinity));
  const unfinished = history.entries.filter(({ pending }) => pending !== undefined).length;
  const [first] = [...messages, ...waits];
  const others = Math.max(0, unfinished + waits.length - 1);
  return { ...about(history.run), ...(first ?? stuckCause()), others };
}

/** Explains an ended run from its log. */
export function explainEnded({ run, failure }: RunLog): RunExplanation {
  const { id: runId, createdAtMs, state, completedAtMs = createdAtMs, dlqId, config } = run;
  const about = { runId, createdAtMs, others: 0, atMs: completedAtMs };
  const at = new Date(completedAtMs).toISOString();
  if (state === 'RUN_SUCCESS') return { ...about, reason: 'succeeded', sentence: `Succeeded at ${at}.` };
  if (state === 'RUN_CANCELED') return { ...about, reason: 'cancelled', sentence: `Cancelled at ${at}.` };
  const why = failure?.error ?? 'cause unknown';
  const { successor } = config;
  const location = successor
    ? `It has been replaced by run ${successor.id}.`
    : dlqId === undefined
      ? 'It is no longer in the DLQ.'
      : `It is in the DLQ as ${dlqId}.`;
  const failed: RunExplanation = { ...about, reason: 'failed', sentence: `Failed at ${at}: ${why}. ${location}` };
  if (dlqId !== undefined) failed.dlqId = dlqId;
  return failed;
}

function about({ id, createdAtMs }: LoggedRun): Pick<RunExplanation, 'runId' | 'createdAtMs'> {
  return { runId: id, createdAtMs };
}

function stuckCause(): RunProgress {
  return {
    reason: 'stuck',
    sentence: 'Stuck: the endpoint responded to its last delivery without publishing a step or ending the run.',
  };
}

function causeOfMessage(
  entry: HistoryEntry,
  info: StepInfo | undefined,
  live: LiveMessage,
  nowMs: Millis,
): RunProgress {
  const { reason, sentence, retried, sinceMs, dueAtMs, flowControlKey } = explain(live, nowMs, {
    failure: entry.failures.at(-1)?.error,
  });
  const why = reason === 'parked' && entry.parked ? `${entry.parked.error} ${sentence}` : sentence;
  const cause: RunProgress = { ...stepOf(info), reason, sentence: `${subjectOf(entry, info)}: ${why}`, retried };
  cause.messageId = entry.message.id;
  if (sinceMs !== undefined) cause.sinceMs = sinceMs;
  if (dueAtMs !== undefined) cause.dueAtMs = dueAtMs;
  if (flowControlKey !== undefined) cause.flowControlKey = flowControlKey;
  if (entry.kind === 'toCallback') cause.url = maskPassword(entry.message.url);
  const isSleep = info?.sleepForMs !== undefined || info?.sleepUntilMs !== undefined;
  if (isSleep && reason !== 'parked' && dueAtMs !== undefined && dueAtMs > nowMs && entry.failures.length === 0) {
    return {
      ...cause,
      reason: 'sleeping',
      sentence: `Sleeps in ${named(info)} until ${new Date(dueAtMs).toISOString()}.`,
    };
  }
  return cause;
}

function subjectOf({ kind, message }: HistoryEntry, info: StepInfo | undefined): string {
  switch (kind) {
    case 'initial':
      return 'Its first delivery';
    case 'plan':
      return `The delivery that executes ${named(info)}`;
    case 'toCallback':
      return `The call of ${named(info)} to ${maskPassword(message.url)}`;
    case 'fromCallback':
      return `The delivery of the response to the call of ${named(info)}`;
    default:
      return `The delivery after ${named(info)}`;
  }
}

/** The cause when a step waits for an event or for the end of another run. */
function causeOfRecord({ info, byKind: by }: StepEntries): RunProgress | undefined {
  if (by.step) return undefined;
  if (by.wait) return causeOfWait(info, by.wait);
  const { invoked } = info;
  if (!by.invoke || !invoked) return undefined;
  const url = maskPassword(invoked.url);
  return {
    ...stepOf(info),
    reason: 'invoked',
    sentence: `Waits in ${named(info)} for the end of run ${invoked.runId}, served by ${url}.`,
    messageId: by.invoke.message.id,
    url,
    invokedRunId: invoked.runId,
  };
}

function causeOfWait(info: StepInfo, { message }: HistoryEntry): RunProgress {
  const { eventId = '', deadlineMs } = info.wait ?? {};
  const until = deadlineMs === undefined ? '' : `, until ${new Date(deadlineMs).toISOString()} at the latest`;
  const cause: RunProgress = {
    ...stepOf(info),
    reason: 'waiting',
    sentence: `Waits in ${named(info)} for event ${eventId}${until}.`,
    messageId: message.id,
    eventId,
  };
  if (deadlineMs !== undefined) cause.dueAtMs = deadlineMs;
  return cause;
}

function stepOf(info: StepInfo | undefined): Pick<RunProgress, 'stepId' | 'stepName' | 'stepType'> {
  const step: Pick<RunProgress, 'stepId' | 'stepName' | 'stepType'> = {};
  if (!info) return step;
  if (info.stepId > 0) step.stepId = info.stepId;
  if (info.stepName !== undefined) step.stepName = info.stepName;
  if (info.stepType !== undefined) step.stepType = info.stepType;
  return step;
}

function named(info: StepInfo | undefined): string {
  if (!info) return 'a step';
  return info.stepName === undefined ? `step ${info.stepId}` : `step ${info.stepId} (${info.stepName})`;
}
