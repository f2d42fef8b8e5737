/** Retries or deletes many entries of the DLQ, a page at a time, and says how far it is. */
import { call, Refusal } from '../../api/client.ts';
import type { Selection } from './selection.ts';

export type BulkAction = 'retry' | 'delete';

export interface Progress {
  done: number;
  /** Entries that somebody else retried or deleted meanwhile. */
  gone: number;
}

const PAGE_COUNT = 100;

interface Bulk {
  action: BulkAction;
  selection: Selection;
  /** Has a `toDate`: what fails meanwhile is not of it. */
  filter: Record<string, string>;
}

export async function runBulk(bulk: Bulk, tell: (progress: Progress) => void, signal: AbortSignal): Promise<Progress> {
  const { action, selection, filter } = bulk;
  let progress: Progress = { done: 0, gone: 0 };
  const add = ({ done, gone }: Progress): void => {
    progress = { done: progress.done + done, gone: progress.gone + gone };
    tell(progress);
  };
  if (selection.kind === 'some') {
    const ids = [...selection.ids];
    for (let at = 0; at < ids.length && !signal.aborted; at += PAGE_COUNT) {
      add(await runIds(action, ids.slice(at, at + PAGE_COUNT), signal));
    }
    return progress;
  }
  let cursor: string | undefined;
  do {
    const query = { ...filter, count: PAGE_COUNT, ...(cursor && { cursor }) } as never;
    if (action === 'delete') {
      const answer = await call('deleteDlqMessages', { query }, signal);
      add({ done: answer.deleted, gone: 0 });
      cursor = answer.cursor;
    } else {
      const answer = await call('retryDlqMessages', { query }, signal);
      add({ done: answer.responses.length, gone: 0 });
      cursor = answer.cursor || undefined;
    }
  } while (cursor !== undefined && !signal.aborted);
  return progress;
}

async function runIds(action: BulkAction, dlqIds: string[], signal: AbortSignal): Promise<Progress> {
  if (action === 'delete') {
    const { deleted } = await call('deleteDlqMessages', { query: { dlqIds } }, signal);
    return { done: deleted, gone: dlqIds.length - deleted };
  }
  try {
    const { responses } = await call('retryDlqMessages', { query: { dlqIds } }, signal);
    return { done: responses.length, gone: 0 };
  } catch (error) {
    if (!(error instanceof Refusal && error.status === 404)) throw error;
    // All or none: with one of them gone, each goes by itself.
    if (dlqIds.length === 1) return { done: 0, gone: 1 };
    let sum: Progress = { done: 0, gone: 0 };
    for (const id of dlqIds) {
      const { done, gone } = await runIds(action, [id], signal);
      sum = { done: sum.done + done, gone: sum.gone + gone };
    }
    return sum;
  }
}

/** Counts what matches, page by page, since the interface has no count. */
export async function countMatching(
  filter: Record<string, string>,
  tell: (count: number) => void,
  signal: AbortSignal,
): Promise<number> {
  let count = 0;
  let cursor: string | undefined;
  do {
    const query = { ...filter, count: PAGE_COUNT, ...(cursor && { cursor }) } as never;
    const answer: { messages: unknown[]; cursor?: string } = await call('listDlqMessages', { query }, signal);
    count += answer.messages.length;
    tell(count);
    cursor = answer.cursor;
  } while (cursor !== undefined && !signal.aborted);
  return count;
}
