/** Cancels many runs, or resumes, restarts or deletes many that have failed. */
import { call } from '../../api/client.ts';
import { countPages, type Job, stepsOf } from '../../parts/bulk.ts';

type Filter = Record<string, string>;

const CANCELLED_COUNT = 100;
const FAILED_COUNT = 50;

/** Runs that begin while it works are not of it. */
export function cancelJob(filter: Filter): Job {
  const bounded: Filter = { toDate: String(Date.now()), ...filter };
  const { state: _, workflowRunId, ...rest } = bounded;
  const exact = rest['workflowUrl'] === undefined ? {} : { workflowUrlExactMatch: 'true' };
  const listed = { ...rest, ...(workflowRunId && { workflowRunId }), state: 'RUN_STARTED', trimBody: 0 };
  // With ids, the interface ignores every other filter.
  const cancelled = workflowRunId ? { workflowRunIds: workflowRunId } : { ...rest, ...exact, count: CANCELLED_COUNT };
  return {
    title: 'Cancel active runs',
    nounOf,
    done: 'cancelled',
    warning: 'They do no further step, and a cancelled run cannot be resumed.',
    button: 'Cancel runs',
    kind: 'danger',
    count: (tell, signal) =>
      countPages(async (cursor) => {
        const answer = await call('listWorkflowRuns', { query: { ...listed, cursor } as never }, signal);
        return { count: answer.runs.length, cursor: answer.cursor };
      }, tell),
    step: async (_cursor, signal) => {
      const answer = await call('cancelWorkflowRuns', { query: cancelled as never }, signal);
      const isWhole = workflowRunId !== undefined || answer.cancelled < CANCELLED_COUNT;
      return { done: answer.cancelled, cursor: isWhole ? undefined : 'more' };
    },
  };
}

export type FailedAction = 'resume' | 'restart' | 'delete';

const FAILED_WORDS = {
  resume: {
    title: 'Resume failed runs',
    done: 'resumed',
    warning: 'Each becomes a new run that goes on with the step that failed, and leaves the DLQ.',
    button: 'Resume',
    kind: 'main',
  },
  restart: {
    title: 'Restart failed runs',
    done: 'restarted',
    warning: 'Each becomes a new run that does every step anew, with the same input, and leaves the DLQ.',
    button: 'Restart',
    kind: 'main',
  },
  delete: {
    title: 'Delete failed runs',
    done: 'deleted',
    warning: 'They leave the DLQ for good, and can be resumed no more.',
    button: 'Delete',
    kind: 'danger',
  },
} as const;

/** `ids`: only these; without them all that match the filter and have failed by now. */
export function failedJob(action: FailedAction, filter: Filter, ids?: readonly string[]): Job {
  const bounded = { toDate: String(Date.now()), ...filter };
  const page = async (query: object, signal: AbortSignal) => {
    if (action === 'delete') {
      const answer = await call('deleteFailedWorkflowRuns', { query: query as never }, signal);
      return { done: answer.deleted, cursor: answer.cursor };
    }
    const id = action === 'resume' ? 'resumeWorkflowRuns' : 'restartWorkflowRuns';
    const answer = await call(id, { query: query as never }, signal);
    return { done: answer.workflowRuns.length, cursor: answer.cursor };
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
    count: (tell, signal) =>
      countPages(async (cursor) => {
        const answer = await call('listFailedWorkflowRuns', { query: { ...bounded, cursor } as never }, signal);
        return { count: answer.messages.length, cursor: answer.cursor };
      }, tell),
    step: (cursor, signal) => page({ ...bounded, count: FAILED_COUNT, cursor }, signal),
  };
}

function nounOf(count: number): string {
  return count === 1 ? 'run' : 'runs';
}
