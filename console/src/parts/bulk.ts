/** Bulk actions on a list: count the entries, then change them page by page. */

export interface Job {
  title: string;
  /** The unit of the count, as in "3 runs". */
  nounOf: (count: number) => string;
  /** The past participle of the action, as in "3 of 5 retried". */
  done: string;
  /** The effect of the action on the entries. */
  warning: string;
  button: string;
  kind: 'main' | 'danger';
  /** Reports the count so far to `report`. */
  count: (report: (count: number) => void, signal: AbortSignal) => Promise<number>;
  /** Changes one page and returns the cursor of the next page. */
  step: (cursor: string | undefined, signal: AbortSignal) => Promise<Step>;
}

export interface Step {
  done: number;
  /** Entries that no longer existed. */
  missing?: number;
  cursor?: string | undefined;
}

/** Counts page by page, since the API has no count. */
export async function countPages(
  read: (cursor: string | undefined) => Promise<{ count: number; cursor?: string | undefined }>,
  report: (count: number) => void,
): Promise<number> {
  let count = 0;
  let cursor: string | undefined;
  do {
    const page = await read(cursor);
    count += page.count;
    report(count);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return count;
}

/** Changes `ids` in batches of `batchSize`. */
export function stepsOf(
  ids: readonly string[],
  batchSize: number,
  change: (ids: string[], signal: AbortSignal) => Promise<Step>,
): Job['step'] {
  return async (cursor, signal) => {
    const from = Number(cursor ?? 0);
    const to = from + batchSize;
    const step = await change(ids.slice(from, to), signal);
    return { ...step, cursor: to < ids.length ? String(to) : undefined };
  };
}
