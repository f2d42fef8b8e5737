/**
 * Groups the journal of a run by step, and derives the state of each step for the log (contract W 18.1). Several entries
 * may belong to one step: a plan, a call, a wait and a result.
 */

import { entryKeyOfCallResult } from './entry-keys.ts';
import type { DeliveryProgress, Failure, HistoryEntry, LoggedRun } from './history.ts';
import type { EntryKind } from './model.ts';
import { joinStepInfo, type StepInfo, stepInfoOf } from './step-info.ts';

export type StepState =
  | 'STEP_PROGRESS'
  | 'STEP_RETRY'
  | 'STEP_PARKED'
  | 'STEP_SUCCESS'
  | 'STEP_FAILED'
  | 'STEP_CANCELED';

export interface StepSummary {
  info: StepInfo;
  state: StepState;
  /**
   * The failed attempts of an unfinished step, oldest first, with the reason for parking. Empty once the step has a
   * result.
   */
  failures: Failure[];
  nextDeliveryAtMs?: number;
}

/** The entries that belong to one step. */
export interface StepEntries {
  info: StepInfo;
  /** The last entry of each kind. */
  byKind: Partial<Record<EntryKind, HistoryEntry>>;
}

/** Steps that run concurrently: a single step, or a parallel group. */
export interface StepGroup {
  /** How many steps belong to the group. `steps` has fewer while some plans are missing. */
  concurrent: number;
  steps: StepEntries[];
}

/** Groups the entries of a journal by step, in the order in which the steps started. */
export function groupEntries(entries: readonly HistoryEntry[]): StepGroup[] {
  const groups: StepGroup[] = [];
  const byId = new Map<number, StepEntries>();
  const callByKey = new Map<string, StepEntries>();
  for (const entry of entries) {
    if (entry.kind === 'stepConfig') continue;
    const info = stepInfoOf(entry.message, {
      isInitial: entry.kind === 'initial',
      ...(entry.child ? { child: entry.child } : undefined),
    });
    // An entry without a step id is a step of its own, except the initial entry.
    const hasId = info.stepId > 0 || entry.kind === 'initial';
    const earlier =
      (entry.kind === 'fromCallback' && callByKey.get(entry.entryKey)) || (hasId && byId.get(info.stepId));
    if (earlier) {
      // Once a step has its result, later entries of the step are not needed.
      if (earlier.byKind.step) continue;
      earlier.info = joinStepInfo(earlier.info, info);
      earlier.byKind[entry.kind] = entry;
    }
    const step = earlier || addToGroup({ info, byKind: { [entry.kind]: entry } }, groups);
    if (hasId) byId.set(info.stepId, step);
    if (entry.kind === 'toCallback') callByKey.set(entryKeyOfCallResult(entry.key), step);
  }
  for (const { steps } of groups) steps.sort((a, b) => a.info.stepId - b.info.stepId);
  return groups;
}

/**
 * Adds the step to its parallel group. The library plans all steps of a group at once, so their first entries are
 * consecutive.
 */
function addToGroup(step: StepEntries, groups: StepGroup[]): StepEntries {
  const { concurrent } = step.info;
  const last = groups.at(-1);
  if (concurrent > 1 && last?.concurrent === concurrent && last.steps.length < concurrent) last.steps.push(step);
  else groups.push({ concurrent, steps: [step] });
  return step;
}

export function summarizeStep(step: StepEntries, run: LoggedRun, nowMs: number): StepSummary {
  const { info, byKind } = step;
  if (byKind.initial) return { info, state: 'STEP_SUCCESS', failures: [] };
  if (byKind.step) return summarizeFinishedStep(info, byKind, byKind.step, run, nowMs);
  const failures = failuresOfStep(byKind);
  if (run.state !== 'RUN_STARTED') return { info, state: stateAfterEnd(byKind, run), failures };
  const executing = executingOf(byKind);
  if (!executing) return { info, state: 'STEP_PROGRESS', failures };
  const summary: StepSummary = { info, state: stateOfDelivery(executing), failures };
  const dueAtMs = executing.pending?.dueAtMs;
  if (dueAtMs !== undefined && (summary.state !== 'STEP_PROGRESS' || dueAtMs > nowMs))
    summary.nextDeliveryAtMs = dueAtMs;
  return summary;
}

/**
 * The delivery that continues the step. Undefined while the step waits for an event, another run, or the run's next
 * publish.
 */
function executingOf({
  plan,
  toCallback,
  fromCallback,
  wait,
  invoke,
}: StepEntries['byKind']): HistoryEntry | undefined {
  return (fromCallback ?? toCallback ?? wait ?? invoke) ? (fromCallback ?? toCallback) : plan;
}

/**
 * The state of a step whose result is not saved yet. A dead call does not fail the step, because the result of the call
 * reports the failure.
 */
export function stateOfDelivery({
  pending,
  end,
  failures,
  parked,
  kind,
}: DeliveryProgress & { kind?: EntryKind }): StepState {
  if (end === 'failed' && kind !== 'toCallback') return 'STEP_FAILED';
  if (end === 'canceled') return 'STEP_CANCELED';
  if (!pending || pending.isInFlight) return 'STEP_PROGRESS';
  if (parked) return 'STEP_PARKED';
  return failures.length > 0 ? 'STEP_RETRY' : 'STEP_PROGRESS';
}

/**
 * The state of a step without a result after the end of its run. An invoked run continues if the invoking run fails
 * (contract W 12.3).
 */
function stateAfterEnd(byKind: StepEntries['byKind'], run: LoggedRun): StepState {
  if (byKind.plan?.end === 'failed' || byKind.fromCallback?.end === 'failed') return 'STEP_FAILED';
  return byKind.invoke && run.state === 'RUN_FAILED' ? 'STEP_PROGRESS' : 'STEP_CANCELED';
}

/** The failures of a delivery. The reason for parking is included only once, however many attempts were parked. */
export function failuresOfDelivery({ failures, parked }: DeliveryProgress): Failure[] {
  return parked ? [...failures, parked] : failures;
}

function failuresOfStep({ plan, toCallback, fromCallback }: StepEntries['byKind']): Failure[] {
  const entries = [plan, toCallback, fromCallback];
  return entries.flatMap((entry) => (entry ? failuresOfDelivery(entry) : [])).sort((a, b) => a.atMs - b.atMs);
}

/**
 * The state of a step with a result. The result of a sleep is saved when the sleep starts. The sleep ends with the
 * delivery of this result, which may be before the requested time. In a parallel group, the delivery of the plan is
 * delayed instead.
 */
function summarizeFinishedStep(
  info: StepInfo,
  byKind: StepEntries['byKind'],
  result: HistoryEntry,
  run: LoggedRun,
  nowMs: number,
): StepSummary {
  const isSleep = info.sleepForMs !== undefined || info.sleepUntilMs !== undefined;
  if (!isSleep || byKind.plan || !isAsleep(result, run, nowMs)) return { info, state: 'STEP_SUCCESS', failures: [] };
  if (run.state !== 'RUN_STARTED') return { info, state: 'STEP_CANCELED', failures: [] };
  const wakesAtMs = result.pending?.dueAtMs ?? result.message.notBeforeMs;
  return { info, state: 'STEP_PROGRESS', failures: [], nextDeliveryAtMs: wakesAtMs };
}

/** Whether the step sleeps, or was asleep when the run ended. */
function isAsleep({ message, ...progress }: HistoryEntry, { completedAtMs }: LoggedRun, nowMs: number): boolean {
  const { pending, end } = progress;
  if (end === 'delivered' || end === 'failed' || pending?.isInFlight || failuresOfDelivery(progress).length > 0)
    return false;
  return (pending?.dueAtMs ?? message.notBeforeMs) > (completedAtMs ?? nowMs);
}

/** Whether all steps of a group have their results, so that the delivery of the last result continues after the group. */
export function isComplete({ concurrent, steps }: StepGroup): boolean {
  return steps.length >= concurrent && steps.every(({ byKind }) => byKind.initial ?? byKind.step);
}
