/**
 * Computes the rows of a run's timeline and the time segments of each row. Rows come from the run, exact times from its
 * events. If the events have expired, the times of the steps are used. Pure.
 */
import type { FailureFunction, NextStep, RunEvent, Step, WorkflowRun } from '../../generated/interface.ts';
import { type Attempt, type Deliveries, type Delivery, deliveriesOf } from './deliveries.ts';

/** `waits`: a sleep, a wait, or the delay before a retry. `queued`: due, but not started. */
export type SegmentKind = 'run' | 'failed' | 'waits' | 'queued';

export interface Segment {
  kind: SegmentKind;
  fromMs: number;
  toMs: number;
}

export interface Bar {
  /** Unique within the run. */
  key: string;
  name: string;
  type: string;
  state: string;
  fromMs: number;
  toMs: number;
  segments: Segment[];
  attempts: Attempt[];
  /** The position of a step in its parallel group. */
  groupPosition?: 'first' | 'inner' | 'last';
  /** Exactly one of `step`, `next` and `failure` is set. */
  step?: Step;
  next?: NextStep;
  failure?: FailureFunction;
  /** The run that the step invoked. */
  child?: { id: string; createdAtMs: number | undefined };
  /** Whether the result of the step is reused from the failed run that this run resumes. */
  isReused: boolean;
}

/** Open segments of an active run end at `nowMs`. */
export function barsOf(run: WorkflowRun, events: readonly RunEvent[], nowMs: number): Bar[] {
  const deliveries = deliveriesOf(events);
  const runEndMs = run.workflowRunCompletedAt ?? Math.max(nowMs, run.workflowRunCreatedAt);
  const bars: Bar[] = [];
  let executing: Delivery | undefined;
  let previousEndMs = run.workflowRunCreatedAt;
  run.steps.forEach((group, index) => {
    if (group.type === 'next') {
      for (const [at, next] of group.steps.entries()) bars.push(nextBar(next, at, deliveries, runEndMs));
      return;
    }
    const followers = run.steps[index + 1];
    const nextMs = followers && followers.type !== 'next' ? followers.steps[0]?.createdAt : undefined;
    const context = { run, deliveries, executing, previousEndMs, groupEndMs: nextMs ?? runEndMs, runEndMs };
    const groupBars = group.steps.map((step, at) => {
      const bar = stepBar(step, context);
      if (group.steps.length > 1)
        bar.groupPosition = at === 0 ? 'first' : at === group.steps.length - 1 ? 'last' : 'inner';
      return bar;
    });
    bars.push(...groupBars);
    previousEndMs = Math.max(previousEndMs, ...groupBars.map(({ toMs }) => toMs));
    executing = continuingDelivery(group.steps, deliveries) ?? executing;
  });
  if (run.failureFunction) bars.push(failureBar(run.failureFunction, deliveries, nowMs));
  return bars;
}

interface Context {
  run: WorkflowRun;
  deliveries: Deliveries;
  /** The message whose delivery executes a step that has no plan. */
  executing: Delivery | undefined;
  previousEndMs: number;
  groupEndMs: number;
  runEndMs: number;
}

function stepBar(step: Step, context: Context): Bar {
  const { run, deliveries, runEndMs } = context;
  const { stepId = 0, stepType = '', createdAt, invokedWorkflowRunId: childId } = step;
  const isInitial = stepType === 'Initial';
  const isReused =
    !isInitial &&
    createdAt <= run.workflowRunCreatedAt &&
    run.predecessor !== undefined &&
    !deliveries.planOf.has(stepId);
  const phases = isInitial || isReused ? [] : phasesOf(step, context);
  const segments = phases.flatMap(({ segments: own }) => own);
  if (segments.length === 0 && !isInitial && !isReused) segments.push(estimatedSegment(step, context));
  const startMs = isReused ? run.workflowRunCreatedAt : createdAt;
  return {
    ...spanOf(segments, Math.min(startMs, runEndMs)),
    key: `step-${isInitial ? 'initial' : stepId > 0 ? stepId : step.messageId}`,
    name: step.stepName ?? childId ?? 'step',
    type: stepType,
    state: step.state,
    segments,
    attempts: phases.flatMap(({ attempts }) => attempts),
    step,
    ...(childId !== undefined && { child: { id: childId, createdAtMs: step.invokedWorkflowCreatedAt } }),
    isReused,
  };
}

interface StepPhase {
  segments: Segment[];
  attempts: Attempt[];
}

/** The execution of the step, the wait after it, and the request of a call. */
function phasesOf(step: Step, { deliveries, executing, runEndMs }: Context): StepPhase[] {
  const { stepId = 0, stepType = '', createdAt, state } = step;
  const plan = deliveries.planOf.get(stepId);
  const result = deliveries.resultOf.get(stepId);
  const calls = deliveries.callsOf.get(stepId) ?? [];
  const endMs = Math.min(result?.createdMs ?? runEndMs, runEndMs);
  const execution = plan ?? executing;
  const phases: StepPhase[] = [];
  // A parallel sleep is shown as the delay of its plan, any other sleep as the delay of its result.
  if (plan && plan.dueMs > plan.createdMs) phases.push(waitPhase(plan.createdMs, Math.min(plan.dueMs, endMs)));
  if (execution) phases.push(deliveryPhase(execution, plan ? endMs : Math.min(createdAt, endMs)));
  if (stepType.startsWith('Sleep')) {
    if (!plan && result) phases.push(waitPhase(result.createdMs, Math.min(result.dueMs, runEndMs)));
  } else if (WAITING.has(stepType) || calls.length > 0) {
    const fromMs = plan ? Math.max(createdAt, ...endTimesOf(phases)) : createdAt;
    if (state !== 'STEP_SUCCESS' || result) phases.push(waitPhase(fromMs, endMs));
    for (const call of calls) phases.push(deliveryPhase(call, endMs));
  }
  return phases.filter(({ segments, attempts }) => segments.length + attempts.length > 0);
}

const WAITING: ReadonlySet<string> = new Set(['Wait', 'WaitForWebhook', 'Invoke', 'Call']);

function waitPhase(fromMs: number, toMs: number): StepPhase {
  return { segments: toMs > fromMs ? [{ kind: 'waits', fromMs, toMs }] : [], attempts: [] };
}

/** The attempts to deliver a message until `endMs`, and the waits between them. */
function deliveryPhase(delivery: Delivery, endMs: number): StepPhase {
  const segments: Segment[] = [];
  const attempts = delivery.attempts.filter(({ fromMs }) => fromMs <= endMs);
  const add = (kind: SegmentKind, fromMs: number, toMs: number): void => {
    if (toMs > fromMs) segments.push({ kind, fromMs, toMs: Math.min(toMs, endMs) });
  };
  let freeMs = delivery.dueMs;
  for (const [index, { fromMs, toMs = endMs, error }] of attempts.entries()) {
    add(index === 0 ? 'queued' : 'waits', freeMs, fromMs);
    // An attempt that failed after the step had its result is not a failure of the step.
    add(error !== undefined && toMs <= endMs ? 'failed' : 'run', fromMs, toMs);
    freeMs = toMs;
  }
  if (!delivery.isOver && freeMs < endMs) add(attempts.length === 0 ? 'queued' : 'waits', freeMs, endMs);
  return { segments, attempts };
}

/** The delivery that will execute a step which has not started. */
function nextBar(next: NextStep, at: number, { byId }: Deliveries, runEndMs: number): Bar {
  const delivery = byId.get(next.messageId);
  const { segments, attempts } = delivery ? deliveryPhase(delivery, runEndMs) : phaseFromErrors(next);
  return {
    ...spanOf(segments, attempts[0]?.fromMs ?? runEndMs),
    key: `next-${at}-${next.messageId}`,
    name: next.stepName ?? 'next step',
    type: 'Next',
    state: next.state,
    segments,
    attempts,
    next,
    isReused: false,
  };
}

function failureBar(failure: FailureFunction, { byId }: Deliveries, nowMs: number): Bar {
  const delivery = byId.get(failure.messageId);
  const { segments, attempts } = delivery ? deliveryPhase(delivery, nowMs) : phaseFromErrors(failure);
  return {
    ...spanOf(segments, attempts[0]?.fromMs ?? nowMs),
    key: 'failure',
    name: 'failure callback',
    type: 'Failure',
    state: failure.state,
    segments,
    attempts,
    failure,
    isReused: false,
  };
}

/** Returns the attempts of a step without events. Only the error and the end time of each attempt are known. */
function phaseFromErrors({ errors = [] }: Pick<NextStep, 'errors'>): StepPhase {
  const attempts = errors.map(
    ({ time, error, status, body }, index): Attempt => ({
      purpose: 'step',
      number: index + 1,
      fromMs: time,
      toMs: time,
      error,
      ...(status !== undefined && { status }),
      ...(body !== '' && { response: body }),
    }),
  );
  return { segments: [], attempts };
}

/**
 * The segment of a step without events. The segment ends with the saved result; if a parallel step is only planned, with
 * the group.
 */
function estimatedSegment(step: Step, { previousEndMs, groupEndMs, runEndMs }: Context): Segment {
  const { createdAt, concurrent, stepType = '', sleepFor, sleepUntil } = step;
  const wakesMs = sleepUntil ?? (sleepFor === undefined ? undefined : createdAt + sleepFor);
  const kind = wakesMs !== undefined || WAITING.has(stepType) ? 'waits' : 'run';
  const isInstant = concurrent === 1 && kind === 'run';
  const fromMs = isInstant ? Math.min(previousEndMs, createdAt) : createdAt;
  const toMs = isInstant ? createdAt : Math.min(wakesMs ?? groupEndMs, runEndMs);
  return { kind, fromMs, toMs: Math.max(fromMs, toMs) };
}

/** The delivery that continues the run after a group: the delivery of the last result. */
function continuingDelivery(steps: readonly Step[], { resultOf, byId }: Deliveries): Delivery | undefined {
  return steps
    .flatMap(({ stepId = 0, messageId }) => resultOf.get(stepId) ?? byId.get(messageId) ?? [])
    .reduce<Delivery | undefined>((last, each) => (last && last.createdMs > each.createdMs ? last : each), undefined);
}

function spanOf(segments: readonly Segment[], atMs: number): { fromMs: number; toMs: number } {
  if (segments.length === 0) return { fromMs: atMs, toMs: atMs };
  return {
    fromMs: segments.reduce((least, { fromMs }) => Math.min(least, fromMs), Number.POSITIVE_INFINITY),
    toMs: segments.reduce((most, { toMs }) => Math.max(most, toMs), 0),
  };
}

function endTimesOf(phases: readonly StepPhase[]): number[] {
  return phases.flatMap(({ segments }) => segments.map(({ toMs }) => toMs));
}
