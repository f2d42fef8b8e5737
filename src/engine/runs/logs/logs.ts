/** Lists runs with their steps, and explains why a run makes no progress. */

import type { RunState } from '../../../workflow/model.ts';
import { hasStepIn, type RunLog, runLogOf } from '../../../workflow/run-log.ts';
import type { StepState } from '../../../workflow/step-summaries.ts';
import { truncateLog } from '../../../workflow/truncate-log.ts';
import type { EngineContext } from '../../context.ts';
import type { Page, PageRequest } from '../../lists/page.ts';
import type { ProjectId } from '../../model.ts';
import { explainActive, explainEnded, liveEntriesOf, type RunExplanation } from './explain.ts';
import type { RunFilter } from './log-store.ts';

/**
 * The maximum of runs that one request reads to find steps in given states. After this many runs, the page is returned
 * even if it is short.
 */
const RUNS_READ_MAX = 200;

/**
 * The possible states of a run with a step in the given state. If a step state is not listed, every run state is
 * possible.
 */
const RUN_STATES_BY_STEP: Partial<Record<StepState, readonly RunState[]>> = {
  STEP_PROGRESS: ['RUN_STARTED', 'RUN_FAILED'],
  STEP_RETRY: ['RUN_STARTED'],
  STEP_PARKED: ['RUN_STARTED'],
  STEP_FAILED: ['RUN_FAILED'],
  STEP_CANCELED: ['RUN_SUCCESS', 'RUN_FAILED', 'RUN_CANCELED'],
};

/**
 * Lists runs with their steps, newest first. `stepState`: lists only runs that have a step in one of these states.
 * `bodyBytesMax`: bodies may be cut to this length plus one byte. A page may be short although more runs follow.
 */
export async function listRuns(
  context: EngineContext,
  projectId: ProjectId,
  { stepState, ...filter }: RunFilter & { stepState?: StepState[] },
  page: PageRequest,
  bodyBytesMax?: number,
): Promise<Page<RunLog>> {
  // The store ends a page after a number of bytes. Cut bodies are short, so this page can have more runs than one read returns.
  if (!stepState && bodyBytesMax === undefined) return read(context, projectId, filter, page, bodyBytesMax);
  const states = stepState && new Set(stepState);
  const wanted = stepState ? narrowFilter(filter, stepState) : filter;
  const items: RunLog[] = [];
  let { cursor } = page;
  for (let runsRead = 0; runsRead < RUNS_READ_MAX && items.length < page.count; runsRead += page.count) {
    const request = { ...page, count: page.count - items.length, ...(cursor !== undefined && { cursor }) };
    const logs = await read(context, projectId, wanted, request, bodyBytesMax);
    items.push(...(states ? logs.items.filter((log) => hasStepIn(log, states)) : logs.items));
    cursor = logs.cursor;
    if (cursor === undefined) return { items };
  }
  return cursor === undefined ? { items } : { items, cursor };
}

/**
 * Explains why the latest run with the id does not advance (P14), or how it ended. Returns undefined if no such run is
 * kept.
 */
export async function explainRun(
  { store, clock }: EngineContext,
  projectId: ProjectId,
  runId: string,
): Promise<RunExplanation | undefined> {
  const latest = { count: 1, order: 'latestFirst' } as const;
  const [history] = (await store.runLogs.listRunHistories({ projectId, filter: { runId: [runId] }, page: latest }))
    .items;
  if (!history) return undefined;
  const nowMs = clock.nowMs();
  if (history.run.state !== 'RUN_STARTED') return explainEnded(runLogOf(history, nowMs));
  const ids = liveEntriesOf(history).map(({ message }) => message.id);
  const messages = await Promise.all(ids.map((id) => store.messages.findLive({ projectId, id, nowMs })));
  const live = new Map(messages.flatMap((each) => (each ? [[each.message.id, each]] : [])));
  return explainActive(history, live, nowMs);
}

async function read(
  { store, clock }: EngineContext,
  projectId: ProjectId,
  filter: RunFilter,
  page: PageRequest,
  bodyBytesMax: number | undefined,
): Promise<Page<RunLog>> {
  const { items, ...rest } = await store.runLogs.listRunHistories({ projectId, filter, page, bodyBytesMax });
  const nowMs = clock.nowMs();
  const logs = items.map((history) => runLogOf(history, nowMs));
  return { ...rest, items: bodyBytesMax === undefined ? logs : logs.map((log) => truncateLog(log, bodyBytesMax)) };
}

/** Narrows the filter to runs that can have a step in one of `stepStates`. */
function narrowFilter(filter: RunFilter, stepStates: readonly StepState[]): RunFilter {
  const possible = stepStates.map((state) => RUN_STATES_BY_STEP[state]);
  if (possible.includes(undefined)) return filter;
  const states = new Set(possible.flatMap((each) => each ?? []));
  return { ...filter, state: filter.state?.filter((state) => states.has(state)) ?? [...states] };
}
