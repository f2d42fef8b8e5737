/** The rows of the timeline: the steps of a run, and below an invoking step those of the child run, if it is expanded. Pure. */
import type { RunName, RunWithEvents } from './data.ts';
import { type Bar, barsOf } from './timeline.ts';

export interface Row {
  /** Unique in the timeline: the keys of the bars that lead to it. */
  key: string;
  bar: Bar;
  depth: number;
  /** The run of the step. */
  run: RunName;
  isUnfolded: boolean;
}

/** Child runs below this depth are shown on their own page only. */
const DEPTH_MAX = 4;

export function rowsOf(
  { run, events }: RunWithEvents,
  nowMs: number,
  unfolded: ReadonlySet<string>,
  childOf: (id: string) => RunWithEvents | null | undefined,
  above = '',
  depth = 0,
): Row[] {
  const name = { id: run.workflowRunId, createdAtMs: run.workflowRunCreatedAt };
  return barsOf(run, events, nowMs).flatMap((bar) => {
    const key = `${above}${bar.key}`;
    const isUnfolded = bar.child !== undefined && unfolded.has(key);
    const child = isUnfolded && bar.child && depth < DEPTH_MAX ? childOf(bar.child.id) : undefined;
    const row = { key, bar, depth, run: name, isUnfolded };
    return child ? [row, ...rowsOf(child, nowMs, unfolded, childOf, `${key}/`, depth + 1)] : [row];
  });
}
