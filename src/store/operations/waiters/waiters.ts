/** Finds the waiters of an event and the waiters past their deadline, and ends waits. */
import type { Saved } from '../../../engine/messages/accepted.ts';
import type { MessageKey, NewMessage, ProjectId } from '../../../engine/model.ts';
import type { Waiter } from '../../../engine/runs/stores.ts';
import type { RunKey } from '../../../workflow/model.ts';
import type { Queries } from '../../driver.ts';
import { excludingMoving } from '../locking/placement.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { insertMessages } from '../messages/accept.ts';
import {
  CONTENT_FIELDS,
  type ContentRow,
  decodeMessage,
  encodeNewMessage,
  projectOf,
  type StoredNewMessage,
  weightOf,
} from '../messages/rows.ts';
import { longRead, read, write } from '../operation.ts';

/** The maximum bytes of the contents of waiters on one page. */
const PAGE_BYTES_MAX = 4 * 1024 * 1024;

export interface WaiterRow extends ContentRow {
  event_id: string;
  deadline_ms: number;
}

function decodeWaiter(row: WaiterRow): Waiter {
  return { eventId: row.event_id, deadlineMs: row.deadline_ms, record: decodeMessage(row) };
}

/** A waiter and the size of its content. */
interface Candidate {
  key: number;
  bytes: number;
}

const CANDIDATES = `select w.key, length(c.settings) + coalesce(length(c.body), 0) as bytes
from waiters w lookup contents c on (c.key = w.key)`;

export interface ListWaitersArgs {
  projectId: ProjectId;
  eventId: string;
  runKey?: RunKey;
  afterKey?: MessageKey;
  count: number;
}

/**
 * The waiters of an event, or only those of the run `runKey`, in order of registration: up to `count` after `afterKey`,
 * and up to about 4 MiB of contents, but at least one.
 */
export const listWaiters = longRead(waitersFor, (rows): Waiter[] => rows.map(decodeWaiter));

async function waitersFor(queries: Queries, args: ListWaitersArgs): Promise<WaiterRow[]> {
  const { projectId, eventId, runKey, afterKey = -1, count } = args;
  const candidates =
    runKey === undefined
      ? await queries.query<Candidate>(
          `${CANDIDATES} where w.project_id = ? and w.event_id = ? and w.key > ? order by w.key limit ?`,
          [projectId, eventId, afterKey, count],
        )
      : await queries.query<Candidate>(
          `${CANDIDATES} where w.run_key = ? and w.event_id = ? and w.key > ? and w.project_id = ? order by w.key limit ?`,
          [runKey, eventId, afterKey, projectId, count],
        );
  return readWaiters(queries, candidates);
}

export interface DueWaiterRows {
  due: WaiterRow[];
  /** Set only if no waiter is due, but a waiter exists. */
  nextAtMs: number | undefined;
}

/**
 * Waiters past their deadline, earliest first, with the page limits of `listWaiters`. If no deadline has passed,
 * `nextAtMs` is the earliest deadline.
 */
export const dueWaiters = read(
  async (queries: Queries, { nowMs, limit }: { nowMs: number; limit: number }): Promise<DueWaiterRows> => {
    const { and, params } = await excludingMoving(queries, 'w.project_id');
    const candidates = await queries.query<Candidate>(
      `${CANDIDATES} where w.deadline_ms <= ?${and} order by w.deadline_ms, w.key limit ?`,
      [nowMs, ...params, limit],
    );
    if (candidates.length > 0) {
      const rows = await readWaiters(queries, candidates);
      return { due: rows.sort((a, b) => a.deadline_ms - b.deadline_ms || a.key - b.key), nextAtMs: undefined };
    }
    return { due: [], nextAtMs: await nextDeadline(queries) };
  },
  ({ due, nextAtMs }) => ({ due: due.map(decodeWaiter), nextAtMs }),
);

/** The earliest deadline of all waiters. */
async function nextDeadline(queries: Queries): Promise<number | undefined> {
  const { where, params } = await excludingMoving(queries);
  const [next] = await queries.query<{ deadline_ms: number }>(
    `select deadline_ms from waiters${where} order by deadline_ms, key limit 1`,
    params,
  );
  return next?.deadline_ms;
}

/** Reads the first candidates that fit into a page together, by key. */
async function readWaiters(queries: Queries, candidates: readonly Candidate[]): Promise<WaiterRow[]> {
  let bytes = 0;
  const fitting = candidates.filter((candidate, index) => {
    bytes += candidate.bytes;
    return index === 0 || bytes <= PAGE_BYTES_MAX;
  });
  if (fitting.length === 0) return [];
  return queries.query<WaiterRow>(
    `select ${CONTENT_FIELDS}, w.event_id, w.deadline_ms from waiters w lookup contents c on (c.key = w.key)
     where w.key in (??) order by w.key`,
    [fitting.map(({ key }) => key)],
  );
}

export interface ResolveWaitersArgs<M = StoredNewMessage> {
  resolutions: { waiterKey: MessageKey; result: M }[];
  nowMs: number;
}

/** Removes the waiters and saves their results. The result for a waiter that was not registered any more is `'gone'`. */
export const resolveWaiters = write(
  {
    weight: ({ resolutions }) => weightOf(resolutions.map(({ result }) => result)),
    touches: ({ resolutions }) => ({ projects: resolutions.map(({ result }) => projectOf(result)) }),
  },
  async (context: WriteContext, { resolutions, nowMs }: ResolveWaitersArgs): Promise<(Saved | 'gone')[]> => {
    const { tx } = context;
    const rows = await tx.query<{ key: number }>(
      'select w.key from list (??) given lookup waiters w on (w.key = given.value)',
      [resolutions.map(({ waiterKey }) => waiterKey)],
    );
    const present = new Set(rows.map(({ key }) => key));
    // If a command has two results for one waiter, only the first counts.
    const isResolved = resolutions.map(({ waiterKey }) => present.delete(waiterKey));
    if (rows.length > 0) await tx.send('delete from waiters where key in (??)', [rows.map(({ key }) => key)]);
    const saved = await insertMessages(
      context,
      resolutions.filter((_, index) => isResolved[index]).map(({ result }) => result),
      nowMs,
    );
    let next = 0;
    return isResolved.map((resolved) => (resolved ? (saved[next++] ?? { state: 'dropped' }) : 'gone'));
  },
  ({ resolutions, nowMs }: ResolveWaitersArgs<NewMessage>) => ({
    resolutions: resolutions.map(({ waiterKey, result }) => ({ waiterKey, result: encodeNewMessage(result) })),
    nowMs,
  }),
);
