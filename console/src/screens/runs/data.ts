/** Loads runs with their events, for the timeline. */
import { type QueryClient, type UseQueryResult, useQueries, useQueryClient } from '@tanstack/react-query';
import { call, REFRESH_MS, type RequestError, type ResponseOf } from '../../api/client.ts';

export type Run = ResponseOf<'listWorkflowRuns'>['runs'][number];
export type RunEvent = ResponseOf<'listWorkflowMessageLogs'>['events'][number];

/** Several runs may share an id. Without the time, the reference is to the latest of these runs. */
export interface RunReference {
  id: string;
  createdAtMs?: number | undefined;
}

export interface RunWithEvents {
  run: Run;
  /** Newest first. */
  events: readonly RunEvent[];
}

/** Longer bodies are truncated until the user asks for the complete body. */
export const SHOWN_BYTES = 4_000;
/** Pages of 1,000 events each. */
const PAGES_MAX = 20;
const RECENT_MS = 60_000;
const RECENT_REFRESH_MS = 1_000;
/** Events may be committed a little after their time. */
const COMMIT_DELAY_MS = 10_000;

/** The data of a run is `null` if the run does not exist. */
export function useRuns(references: readonly RunReference[]): UseQueryResult<RunWithEvents | null, RequestError>[] {
  const queries = useQueryClient();
  return useQueries({
    queries: references.map((reference) => ({
      queryKey: keyOf(reference),
      queryFn: ({ signal }: { signal: AbortSignal }) => readRun(reference, queries, signal),
      refetchInterval: (query: { state: { data?: RunWithEvents | null | undefined } }) =>
        refreshMsOf(query.state.data?.run),
    })),
  }) as UseQueryResult<RunWithEvents | null, RequestError>[];
}

function keyOf({ id, createdAtMs }: RunReference): unknown[] {
  return ['run with events', id, createdAtMs ?? 0];
}

export function isInProgress(run: Run | undefined): boolean {
  return run?.workflowState === 'RUN_STARTED' || run?.failureFunction?.state === 'CALLBACK_INPROGRESS';
}

/** Whether the run is waiting for matching code, or for somebody to resume it. */
export function isParked({ steps }: Run): boolean {
  return steps.some((group) => group.steps.some(({ state }) => state === 'STEP_PARKED'));
}

/** A young run is probably being watched, and finishes soon, so it is reloaded more often. */
function refreshMsOf(run: Run | undefined): number | false {
  if (run === undefined || !isInProgress(run)) return false;
  return Date.now() - run.workflowRunCreatedAt < RECENT_MS ? RECENT_REFRESH_MS : REFRESH_MS;
}

async function readRun(
  reference: RunReference,
  queries: QueryClient,
  signal: AbortSignal,
): Promise<RunWithEvents | null> {
  const query = {
    workflowRunId: [reference.id],
    ...(reference.createdAtMs && { workflowCreatedAt: reference.createdAtMs }),
  };
  const { runs } = await call('listWorkflowRuns', { query: { ...query, trimBody: SHOWN_BYTES, count: 1 } }, signal);
  const [run] = runs;
  if (run === undefined) return null;
  const known = queries.getQueryData<RunWithEvents | null>(keyOf(reference));
  const isSame = known?.run.workflowRunCreatedAt === run.workflowRunCreatedAt;
  return { run, events: await readEvents(run, isSame ? (known?.events ?? []) : [], signal) };
}

/** Returns all events of the run. Loads only events that may be missing in `known`. */
async function readEvents(run: Run, known: readonly RunEvent[], signal: AbortSignal): Promise<readonly RunEvent[]> {
  const fromDate = Math.max(0, (known[0]?.time ?? 0) - COMMIT_DELAY_MS);
  const found: RunEvent[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page = await call(
      'listWorkflowMessageLogs',
      {
        query: {
          workflowRunId: [run.workflowRunId],
          workflowCreatedAt: run.workflowRunCreatedAt,
          ...(fromDate > 0 && { fromDate }),
          ...(cursor !== undefined && { cursor }),
        },
      },
      signal,
    );
    found.push(...page.events);
    cursor = page.cursor;
    if (cursor === undefined) break;
  }
  return [...found, ...known.filter(({ time }) => time < fromDate)];
}
