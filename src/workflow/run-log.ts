/** Builds the log of a run, step by step, from its history (contract W 18.1). */
import type {
  DeliveryProgress,
  Failure,
  FailureFunction,
  HistoryEntry,
  LoggedMessage,
  LoggedRun,
  RunHistory,
} from './history.ts';
import {
  failuresOfDelivery,
  groupEntries,
  isComplete,
  type StepGroup,
  type StepState,
  type StepSummary,
  stateOfDelivery,
  summarizeStep,
} from './step-summaries.ts';

/** A delivery that will execute a step without a journal entry. */
export interface NextStep {
  message: LoggedMessage;
  state: StepState;
  failures: Failure[];
  /** The name of the failed step, from the response of the client library. */
  stepName?: string;
  nextDeliveryAtMs?: number;
}

export interface SummaryGroup {
  type: 'sequential' | 'parallel';
  steps: StepSummary[];
}

export interface RunLog {
  run: LoggedRun;
  groups: SummaryGroup[];
  next: NextStep[];
  failureFunction?: FailureFunction;
  /** The last failed attempt of the message that failed the run; absent if the message had no attempt. */
  failure?: Failure;
}

export function runLogOf({ run, entries, failureFunction }: RunHistory, nowMs: number): RunLog {
  const groups = groupEntries(entries);
  const log: RunLog = {
    run,
    groups: groups.map((group) => ({
      type: group.concurrent > 1 ? 'parallel' : 'sequential',
      steps: group.steps.map((step) => summarizeStep(step, run, nowMs)),
    })),
    next: nextSteps(run, entries, groups, nowMs),
  };
  if (failureFunction && failureFunction.state !== 'none') log.failureFunction = failureFunction;
  const failed = run.state === 'RUN_FAILED' ? entries.findLast(isFatal) : undefined;
  const failure = failed?.failures.at(-1);
  if (failure) log.failure = failure;
  return log;
}

/** Whether a step of the run, or a delivery that will execute a step, has one of `states`. */
export function hasStepIn(log: RunLog, states: ReadonlySet<StepState>): boolean {
  const { groups, next } = log;
  return (
    groups.some(({ steps }) => steps.some(({ state }) => states.has(state))) ||
    next.some(({ state }) => states.has(state))
  );
}

/** A dead call never fails the run. */
function isFatal({ kind, end }: HistoryEntry): boolean {
  return end === 'failed' && kind !== 'toCallback';
}

/**
 * The unfinished or failed deliveries that continue the workflow function. These are the deliveries of the first message
 * and of each result.
 */
function nextSteps(
  run: LoggedRun,
  entries: readonly HistoryEntry[],
  groups: readonly StepGroup[],
  nowMs: number,
): NextStep[] {
  if (run.state === 'RUN_SUCCESS') return [];
  const lastGroup = groups.at(-1);
  const lastDelivery = lastGroup === undefined || isComplete(lastGroup) ? entries.at(-1) : undefined;
  return entries
    .filter(({ kind }) => kind === 'initial' || kind === 'step' || kind === 'stepConfig')
    .filter((entry) => isDue(entry, run.completedAtMs ?? nowMs))
    .filter((entry) => entry === lastDelivery || isFailing(entry))
    .map((entry) => nextStepOf(entry, run));
}

/** Whether the delivery is due or in flight, has failed attempts, or has ended without success. */
function isDue({ message, ...progress }: HistoryEntry, nowMs: number): boolean {
  const { pending, end } = progress;
  if (pending === undefined && end !== 'failed' && end !== 'canceled') return false;
  const dueAtMs = pending?.dueAtMs ?? message.notBeforeMs;
  return pending?.isInFlight === true || failuresOfDelivery(progress).length > 0 || dueAtMs <= nowMs;
}

/** Whether failed attempts of the delivery have delayed the run or ended it. */
function isFailing(progress: DeliveryProgress): boolean {
  const { pending, end } = progress;
  return end === 'failed' || (pending !== undefined && !pending.isInFlight && failuresOfDelivery(progress).length > 0);
}

function nextStepOf({ message, ...progress }: HistoryEntry, run: LoggedRun): NextStep {
  const { pending } = progress;
  const failures = failuresOfDelivery(progress);
  const isOver = run.state !== 'RUN_STARTED' && progress.end !== 'failed';
  const state = isOver ? 'STEP_CANCELED' : stateOfDelivery(progress);
  const step: NextStep = { message, state, failures };
  const { header } = failures.at(-1)?.response ?? {};
  const [stepName] = header?.['Upstash-Error-Step-Name'] ?? header?.['Waypost-Error-Step-Name'] ?? [];
  if (stepName !== undefined) step.stepName = stepName;
  if ((state === 'STEP_RETRY' || state === 'STEP_PARKED') && pending) step.nextDeliveryAtMs = pending.dueAtMs;
  return step;
}
