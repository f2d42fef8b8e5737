/** Formats a run for a terminal: one line for each step, with a bar beside parallel steps. */
import { minuteOf, timeOf, zone } from '../columns.ts';
import { excerpt, plain } from '../plain.ts';
import { resultLinesOf } from './result.ts';
import type { RunView, StepView } from './view.ts';

const MARKS: Readonly<Record<string, { mark: string; ansiCode: number }>> = {
  STEP_SUCCESS: { mark: '✓', ansiCode: 32 },
  STEP_FAILED: { mark: '✗', ansiCode: 31 },
  STEP_RETRY: { mark: '↻', ansiCode: 33 },
  STEP_PARKED: { mark: '‖', ansiCode: 33 },
  STEP_PROGRESS: { mark: '…', ansiCode: 36 },
  STEP_CANCELED: { mark: '–', ansiCode: 90 },
  RUN_SUCCESS: { mark: '✓', ansiCode: 32 },
  RUN_FAILED: { mark: '✗', ansiCode: 31 },
  RUN_STARTED: { mark: '…', ansiCode: 36 },
  RUN_CANCELED: { mark: '–', ansiCode: 90 },
};

/**
 * Formats the head and the steps of a run. `nowMs`: the end of the period that is shown as the duration of an active run.
 */
export function timelineOf(run: RunView, { nowMs, color }: { nowMs: number; color: boolean }): string {
  return `${[...headOf(run, { nowMs, color }), '', ...stepLinesOf(run, color)].join('\n')}\n`;
}

/** One line for each step, in the order of the run. */
export function stepLinesOf(run: RunView, color: boolean): string[] {
  const rows = rowsOf(run);
  const nameWidth = widest(rows.map(({ type, step }) => nameOf(step, type)));
  const typeWidth = widest(rows.map(({ step }) => plain(step.stepType ?? '')));
  const elapsedWidth = widest(rows.map(({ elapsedMs }) => elapsedText(elapsedMs)));
  return rows.map(({ type, step, elapsedMs }) => {
    const cells = [
      type === 'parallel' ? '│' : ' ',
      markOf(step.state, color),
      nameOf(step, type).padEnd(nameWidth),
      plain(step.stepType ?? '').padEnd(typeWidth),
      stateOf(step).padEnd('CANCELED'.length),
      step.createdAt === undefined ? ' '.repeat(12) : timeOf(step.createdAt).slice(11, 23),
      elapsedText(elapsedMs).padStart(elapsedWidth),
      detailOf(step),
    ];
    return cells.join('  ').trimEnd();
  });
}

interface Row {
  type: string;
  step: StepView;
  /** Time since the previous steps; absent for the first step, and for a step without a result. */
  elapsedMs?: number;
}

function rowsOf({ steps: groups }: RunView): Row[] {
  let latestMs: number | undefined;
  return groups.flatMap(({ type, steps }) => {
    const previousMs = latestMs;
    const times = steps.flatMap(({ createdAt }) => createdAt ?? []);
    if (times.length > 0) latestMs = Math.max(...times);
    return steps.map((step): Row => {
      const { createdAt } = step;
      return previousMs === undefined || createdAt === undefined
        ? { type, step }
        : { type, step, elapsedMs: createdAt - previousMs };
    });
  });
}

/** Formats the time since the previous steps, such as `+1.2s`. */
function elapsedText(ms: number | undefined): string {
  return ms === undefined ? '' : `+${durationOf(ms)}`;
}

/** The state, times, labels and outcome of a run. */
export function headOf(run: RunView, { nowMs, color }: { nowMs: number; color: boolean }): string[] {
  const { workflowRunCreatedAt: startedMs, workflowRunCompletedAt: endedMs } = run;
  const took = `${endedMs === undefined ? 'running for' : 'took'} ${durationOf((endedMs ?? nowMs) - startedMs)}`;
  const about = [`started ${minuteOf(startedMs)} ${zone()}`, took];
  if (run.labels) about.push(`labels ${run.labels.map(plain).join(', ')}`);
  if (run.invoker) about.push(`invoked by ${plain(run.invoker.workflowRunId)}`);
  const head = [
    `${markOf(run.workflowState, color)}  ${plain(run.workflowRunId)}  ${wordOf(run.workflowState)}`,
    `   ${plain(run.workflowUrl)}`,
    `   ${about.join(', ')}`,
  ];
  const failure = run.failureFunction?.state;
  if (run.dlqId !== undefined) {
    head.push(
      `   in the DLQ as ${run.dlqId}${failure === undefined ? '' : `, failure callback ${failureWord(failure)}`}`,
    );
  }
  if (run.predecessor) head.push(`   retry of ${plain(run.predecessor.workflowRunId)}`);
  if (run.successor) head.push(`   retried as ${plain(run.successor.workflowRunId)}`);
  return [...head, ...resultLinesOf(run).map((line) => `   ${line}`)];
}

/** The cells of one run in a list. */
export function rowOf(run: RunView, nowMs: number): string[] {
  const { workflowRunCreatedAt: startedMs, workflowRunCompletedAt: endedMs } = run;
  const steps = run.steps.filter(({ type }) => type !== 'next').reduce((sum, group) => sum + group.steps.length, 0);
  return [
    plain(run.workflowRunId),
    wordOf(run.workflowState),
    minuteOf(startedMs),
    durationOf((endedMs ?? nowMs) - startedMs),
    String(steps),
    plain(run.workflowUrl),
  ];
}

function nameOf({ stepName, invokedWorkflowRunId }: StepView, type: string): string {
  const name = plain(stepName ?? invokedWorkflowRunId ?? '');
  if (type !== 'next') return name;
  return name === '' ? '(next step)' : `(next step: ${name})`;
}

function stateOf({ state }: StepView): string {
  return wordOf(state);
}

/** Shortens a state such as `STEP_SUCCESS` to `SUCCESS`. */
function wordOf(state: string): string {
  return plain(state.replace(/^(STEP|RUN)_/, ''));
}

function failureWord(state: string): string {
  return plain(state.replace(/^CALLBACK_/, '').toLowerCase());
}

/** The most useful details of a step, in a few words. */
function detailOf(step: StepView): string {
  const words: string[] = [];
  const { errors = [], retries, nextDeliveryTime } = step;
  const last = errors.at(-1);
  if (step.callUrl !== undefined) words.push(plain(`${step.callMethod ?? ''} ${step.callUrl}`.trim()));
  if (step.callResponseStatus !== undefined) words.push(`status ${step.callResponseStatus}`);
  const out = excerpt(step.callResponseBody ?? step.out);
  if (step.waitEventId !== undefined) words.push(`event ${plain(step.waitEventId)}`);
  if (step.waitTimeout === true) words.push('timed out');
  else if (step.state === 'STEP_PROGRESS' && step.waitTimeoutDeadline !== undefined) {
    words.push(`until ${secondOf(step.waitTimeoutDeadline)}`);
  }
  if (step.sleepFor !== undefined) words.push(`for ${durationOf(step.sleepFor)}`);
  if (step.sleepUntil !== undefined) words.push(`until ${secondOf(step.sleepUntil)}`);
  if (step.invokedWorkflowRunId !== undefined) words.push(`run ${plain(step.invokedWorkflowRunId)}`);
  if (step.state === 'STEP_PARKED') {
    words.push(plain(last?.error ?? ''));
  } else if (errors.length > 0) {
    words.push(`${errors.length} of ${Math.max(errors.length, (retries ?? 0) + 1)} attempts failed`);
    if (last?.error !== undefined) words.push(plain(last.error));
  }
  if ((step.state === 'STEP_RETRY' || step.state === 'STEP_PARKED') && nextDeliveryTime !== undefined)
    words.push(`next attempt at ${secondOf(nextDeliveryTime)}`);
  if (out !== '') words.push(`→ ${out}`);
  return words.join(', ');
}

function secondOf(ms: number): string {
  return timeOf(ms).slice(0, 19).replace('T', ' ');
}

const UNITS: readonly [string, number][] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
];

/** Formats a duration, such as `2h 5m`, `3.2s` or `40ms`. */
export function durationOf(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`;
  if (ms < 60_000) return `${Math.round(ms / 100) / 10}s`;
  const at = UNITS.findIndex(([, unitMs]) => ms >= unitMs);
  const [unit, unitMs] = UNITS[at] ?? ['m', 60_000];
  const [below, belowMs] = UNITS[at + 1] ?? ['s', 1_000];
  const rest = Math.floor((ms % unitMs) / belowMs);
  return `${Math.floor(ms / unitMs)}${unit}${rest > 0 ? ` ${rest}${below}` : ''}`;
}

function markOf(state: string, color: boolean): string {
  const { mark, ansiCode } = MARKS[state] ?? { mark: '?', ansiCode: 0 };
  return color ? `\u001B[${ansiCode}m${mark}\u001B[0m` : mark;
}

function widest(texts: readonly string[]): number {
  return texts.reduce((width, text) => Math.max(width, text.length), 0);
}
