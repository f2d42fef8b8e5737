/** The rows of the timeline: the steps of a run, and below an expanded invoking step the steps of the child run. Pure. */
import type { RunReference, RunWithEvents } from './data.ts';
import { type Bar, barsOf } from './timeline.ts';

export interface Row {
  /** The keys of the bars from the top of the timeline to this row, which are unique together. */
  key: string;
  bar: Bar;
  depth: number;
  /** The run of the step. */
  run: RunReference;
  isExpanded: boolean;
}

/** Child runs below this depth are shown on their own page only. */
const DEPTH_MAX = 4;

export function rowsOf(
  { run, events }: RunWithEvents,
  nowMs: number,
  expanded: ReadonlySet<string>,
  childOf: (id: string) => RunWithEvents | null | undefined,
  keyPrefix = '',
  depth = 0,
): Row[] {
  const reference = { id: run.workflowRunId, createdAtMs: run.workflowRunCreatedAt };
  return barsOf(run, events, nowMs).flatMap((bar) => {
    const key = `${keyPrefix}${bar.key}`;
    const isExpanded = bar.child !== undefined && expanded.has(key);
    const child = isExpanded && bar.child && depth < DEPTH_MAX ? childOf(bar.child.id) : undefined;
    const row = { key, bar, depth, run: reference, isExpanded };
    return child ? [row, ...rowsOf(child, nowMs, expanded, childOf, `${key}/`, depth + 1)] : [row];
  });
}
