/** Changes of many runs at once: how many are meant, then one page of them after the other. */
import { call } from '../../api/client.ts';

export interface Job {
  title: string;
  /** As in "3 runs cancelled". */
  done: string;
  /** What it means for the runs. */
  warning: string;
  button: string;
  kind: 'main' | 'danger';
  /** Counts page by page, since the interface has no count; `tell` says how many so far. */
  count: (tell: (count: number) => void, signal: AbortSignal) => Promise<number>;
  /** Does a page; tells how many, and where to go on. */
  step: (cursor: string | undefined, signal: AbortSignal) => Promise<{ done: number; cursor?: string | undefined }>;
}

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
    done: 'cancelled',
    warning: 'They do no further step, and a cancelled run cannot be resumed.',
    button: 'Cancel runs',
    kind: 'danger',
    count: (tell, signal) =>
      counted(async (cursor) => {
        const answer = await call('listWorkflowRuns', { query: { ...listed, cursor } as never }, signal);
        return { done: answer.runs.length, cursor: answer.cursor };
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
  return {
    ...FAILED_WORDS[action],
    count: (tell, signal) =>
      ids
        ? Promise.resolve(ids.length)
        : counted(async (cursor) => {
            const query = { ...bounded, cursor } as never;
            const answer = await call('listFailedWorkflowRuns', { query }, signal);
            return { done: answer.messages.length, cursor: answer.cursor };
          }, tell),
    step: async (cursor, signal) => {
      if (!ids) return page({ ...bounded, count: FAILED_COUNT, cursor }, signal);
      const from = Number(cursor ?? 0);
      const to = from + FAILED_COUNT;
      const { done } = await page({ dlqIds: ids.slice(from, to) }, signal);
      return { done, cursor: to < ids.length ? String(to) : undefined };
    },
  };
}

async function counted(
  read: (cursor: string | undefined) => Promise<{ done: number; cursor?: string | undefined }>,
  tell: (count: number) => void,
): Promise<number> {
  let count = 0;
  let cursor: string | undefined;
  do {
    const page = await read(cursor);
    count += page.done;
    tell(count);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return count;
}
