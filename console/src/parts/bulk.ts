/** Changes of many entries of a list at once: how many are meant, then one page of them after the other. */

export interface Job {
  title: string;
  /** What is counted, as in "3 runs". */
  nounOf: (count: number) => string;
  /** As in "3 of 5 retried". */
  done: string;
  /** What it means for them. */
  warning: string;
  button: string;
  kind: 'main' | 'danger';
  /** `tell` says how many so far. */
  count: (tell: (count: number) => void, signal: AbortSignal) => Promise<number>;
  /** Does a page; tells where to go on. */
  step: (cursor: string | undefined, signal: AbortSignal) => Promise<Step>;
}

export interface Step {
  done: number;
  /** Entries that somebody else took away meanwhile. */
  gone?: number;
  cursor?: string | undefined;
}

/** Counts page by page, since the interface has no count. */
export async function countPages(
  read: (cursor: string | undefined) => Promise<{ count: number; cursor?: string | undefined }>,
  tell: (count: number) => void,
): Promise<number> {
  let count = 0;
  let cursor: string | undefined;
  do {
    const page = await read(cursor);
    count += page.count;
    tell(count);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return count;
}

/** Steps through `ids`, so many at a time. */
export function stepsOf(
  ids: readonly string[],
  atATime: number,
  change: (ids: string[], signal: AbortSignal) => Promise<Step>,
): Job['step'] {
  return async (cursor, signal) => {
    const from = Number(cursor ?? 0);
    const to = from + atATime;
    const step = await change(ids.slice(from, to), signal);
    return { ...step, cursor: to < ids.length ? String(to) : undefined };
  };
}
