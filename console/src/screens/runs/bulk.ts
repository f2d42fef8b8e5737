/** Bulk actions: cancel active runs; resume, restart or delete failed runs. */
import { call } from '../../api/client.ts';
import { countPages, type Job, stepsOf } from '../../parts/bulk.ts';

type Filter = Record<string, string>;

const CANCELLED_COUNT = 100;
const FAILED_COUNT = 50;

/** Runs that start after the call of this function are not included. */
export function cancelJob(filter: Filter): Job {
  const bounded: Filter = { toDate: String(Date.now()), ...filter };
  const { state: _, workflowRunId, ...rest } = bounded;
  const exact = rest['workflowUrl'] === undefined ? {} : { workflowUrlExactMatch: 'true' };
  const listed = { ...rest, ...(workflowRunId && { workflowRunId }), state: 'RUN_STARTED', trimBody: 0 };
  // With ids, the API ignores all other filters.
  const cancelled = workflowRunId ? { workflowRunIds: workflowRunId } : { ...rest, ...exact, count: CANCELLED_COUNT };
  return {
    title: 'Cancel active runs',
    nounOf,
    done: 'cancelled',
    warning: 'The runs execute no further steps. A cancelled run cannot be resumed.',
    button: 'Cancel runs',
    kind: 'danger',
    count: (report, signal) =>
      countPages(async (cursor) => {
        const page = await call('listWorkflowRuns', { query: { ...listed, cursor } as never }, signal);
        return { count: page.runs.length, cursor: page.cursor };
      }, report),
    step: async (_cursor, signal) => {
      const result = await call('cancelWorkflowRuns', { query: cancelled as never }, signal);
      const isWhole = workflowRunId !== undefined || result.cancelled < CANCELLED_COUNT;
      return { done: result.cancelled, cursor: isWhole ? undefined : 'more' };
    },
  };
}

export type FailedAction = 'resume' | 'restart' | 'delete';

const FAILED_WORDS = {
  resume: {
    title: 'Resume failed runs',
    done: 'resumed',
    warning: 'Each becomes a new run that continues with the failed step, and leaves the DLQ.',
    button: 'Resume',
    kind: 'main',
  },
  restart: {
    title: 'Restart failed runs',
    done: 'restarted',
    warning: 'Each becomes a new run that executes all steps again with the same input, and leaves the DLQ.',
    button: 'Restart',
    kind: 'main',
  },
  delete: {
    title: 'Delete failed runs',
    done: 'deleted',
    warning: 'The runs are removed from the DLQ and can no longer be resumed.',
    button: 'Delete',
    kind: 'danger',
  },
} as const;

/** With `ids`, the job changes only these runs; otherwise all runs that match the filter and have failed so far. */
export function failedJob(action: FailedAction, filter: Filter, ids?: readonly string[]): Job {
  const bounded = { toDate: String(Date.now()), ...filter };
  const page = async (query: object, signal: AbortSignal) => {
    if (action === 'delete') {
      const result = await call('deleteFailedWorkflowRuns', { query: query as never }, signal);
      return { done: result.deleted, cursor: result.cursor };
    }
    const id = action === 'resume' ? 'resumeWorkflowRuns' : 'restartWorkflowRuns';
    const result = await call(id, { query: query as never }, signal);
    return { done: result.workflowRuns.length, cursor: result.cursor };
  };
  const job = { ...FAILED_WORDS[action], nounOf };
  if (ids) {
    return {
      ...job,
      count: async () => ids.length,
      step: stepsOf(ids, FAILED_COUNT, (dlqIds, signal) => page({ dlqIds }, signal)),
    };
  }
  return {
    ...job,
    count: (report, signal) =>
      countPages(async (cursor) => {
        const found = await call('listFailedWorkflowRuns', { query: { ...bounded, cursor } as never }, signal);
        return { count: found.messages.length, cursor: found.cursor };
      }, report),
    step: (cursor, signal) => page({ ...bounded, count: FAILED_COUNT, cursor }, signal),
  };
}

function nounOf(count: number): string {
  return count === 1 ? 'run' : 'runs';
}
