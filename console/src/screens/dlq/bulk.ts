/** Retries or deletes many entries of the DLQ. */
import { call, Refusal } from '../../api/client.ts';
import { countPages, type Job, type Step, stepsOf } from '../../parts/bulk.ts';
import type { Selection } from './selection.ts';

export type BulkAction = 'retry' | 'delete';

const PAGE_COUNT = 100;

const WORDS = {
  retry: {
    title: 'Retry entries of the DLQ',
    done: 'retried',
    warning: 'Each becomes a new message with the same content and settings, and leaves the DLQ.',
    button: 'Retry',
    kind: 'main',
  },
  delete: {
    title: 'Delete entries of the DLQ',
    done: 'deleted',
    warning: 'They are gone for good: neither their bodies nor their answers can be read again.',
    button: 'Delete',
    kind: 'danger',
  },
} as const;

/** What fails from now on, such as an entry that was retried, is not of it. */
export function deadJob(action: BulkAction, selection: Selection, filter: Record<string, string>): Job {
  const bounded = { toDate: String(Date.now()), ...filter, count: PAGE_COUNT };
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
    count: (tell, signal) =>
      countPages(async (cursor) => {
        const answer = await call('listDlqMessages', { query: { ...bounded, cursor } as never }, signal);
        return { count: answer.messages.length, cursor: answer.cursor };
      }, tell),
    step: (cursor, signal) => change(action, { ...bounded, cursor }, signal),
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
    return { done, gone: dlqIds.length - done };
  } catch (error) {
    if (!(error instanceof Refusal && error.status === 404)) throw error;
    // All or none: with one of them gone, each goes by itself.
    if (dlqIds.length === 1) return { done: 0, gone: 1 };
    const sum = { done: 0, gone: 0 };
    for (const id of dlqIds) {
      const { done, gone = 0 } = await changeEach(action, [id], signal);
      sum.done += done;
      sum.gone += gone;
    }
    return sum;
  }
}
