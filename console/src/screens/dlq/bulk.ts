/** Bulk retry and delete of DLQ entries. */
import { call, RequestError } from '../../api/client.ts';
import { countPages, type Job, type Step, stepsOf } from '../../parts/bulk.ts';
import type { Selection } from './selection.ts';

export type BulkAction = 'retry' | 'delete';

const PAGE_COUNT = 100;

const WORDS = {
  retry: {
    title: 'Retry DLQ entries',
    done: 'retried',
    warning: 'Each entry becomes a new message with the same content and settings, and leaves the DLQ.',
    button: 'Retry',
    kind: 'main',
  },
  delete: {
    title: 'Delete DLQ entries',
    done: 'deleted',
    warning: 'The entries are deleted permanently, with their bodies and responses.',
    button: 'Delete',
    kind: 'danger',
  },
} as const;

/** Messages that die after the start, such as retried messages that fail again, are not included. */
export function dlqJob(action: BulkAction, selection: Selection, filter: Record<string, string>): Job {
  const boundedFilter = { toDate: String(Date.now()), ...filter, count: PAGE_COUNT };
  const which = selection.kind === 'all' && Object.keys(filter).length > 0 ? ' that match the filter' : '';
  const job = { ...WORDS[action], nounOf: (count: number) => `${count === 1 ? 'entry' : 'entries'}${which}` };
  if (selection.kind === 'some') {
    const ids = [...selection.ids];
    return {
      ...job,
      count: async () => ids.length,
      step: stepsOf(ids, PAGE_COUNT, (some, signal) => changeEach(action, some, signal)),
    };
  }
  return {
    ...job,
    count: (report, signal) =>
      countPages(async (cursor) => {
        const page = await call('listDlqMessages', { query: { ...boundedFilter, cursor } as never }, signal);
        return { count: page.messages.length, cursor: page.cursor };
      }, report),
    step: (cursor, signal) => change(action, { ...boundedFilter, cursor }, signal),
  };
}

async function change(action: BulkAction, which: object, signal: AbortSignal): Promise<Step> {
  const query = which as never;
  if (action === 'delete') {
    const { deleted, cursor } = await call('deleteDlqMessages', { query }, signal);
    return { done: deleted, cursor };
  }
  const { responses, cursor } = await call('retryDlqMessages', { query }, signal);
  return { done: responses.length, cursor: cursor || undefined };
}

async function changeEach(action: BulkAction, dlqIds: string[], signal: AbortSignal): Promise<Step> {
  try {
    const { done } = await change(action, { dlqIds }, signal);
    return { done, missing: dlqIds.length - done };
  } catch (error) {
    if (!(error instanceof RequestError && error.status === 404)) throw error;
    // The whole request fails if one entry is missing, so the request is repeated for each entry separately.
    if (dlqIds.length === 1) return { done: 0, missing: 1 };
    const sum = { done: 0, missing: 0 };
    for (const id of dlqIds) {
      const { done, missing = 0 } = await changeEach(action, [id], signal);
      sum.done += done;
      sum.missing += missing;
    }
    return sum;
  }
}
