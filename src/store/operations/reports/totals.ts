/**
 * Counts the messages, runs and waiters of the whole store. Each count is limited, and reads an index that has only the
 * counted rows.
 */

import { COUNTED_OF_ALL_MAX, type Totals } from '../../../engine/lists/unfinished.ts';
import type { Millis } from '../../../engine/model.ts';
import type { Queries } from '../../driver.ts';
import { WAIT_STATE } from '../lanes/wait-states.ts';
import { longRead } from '../operation.ts';
import { RUN_STATE } from '../runs/run-rows.ts';

interface Row {
  counted: number;
  first_due_at_ms?: number | null;
}

/** The unclaimed messages in a wait state, in SQL, with the condition of a partial index. */
function waitingIn(state: keyof typeof WAIT_STATE): string {
  return `from messages where claim_token is null and wait_state = ${WAIT_STATE[state]}`;
}

/** Counts the rows of the clause `from`, and finds their earliest `due`. */
function counting(from: string, due?: string): string {
  const first = due === undefined ? '' : ', min(w.due) as first_due_at_ms';
  return `select count(*) as counted${first} from (select ${due ?? '1'} as due ${from} limit ${COUNTED_OF_ALL_MAX}) w`;
}

const COUNTS = {
  due: { text: counting(`${waitingIn('due')} and due_at_ms <= ?`, 'due_at_ms'), isTimed: true },
  scheduled: { text: counting(`${waitingIn('due')} and due_at_ms > ?`), isTimed: true },
  origin: { text: counting(waitingIn('origin'), 'due_at_ms') },
  project: { text: counting(waitingIn('project'), 'due_at_ms') },
  flow: { text: counting(waitingIn('flow')) },
  queue: { text: counting(waitingIn('queue')) },
  active: { text: counting('from messages where claim_token is not null') },
  dead: { text: counting('from dead') },
  runs: { text: counting(`from runs where state = ${RUN_STATE.RUN_STARTED}`) },
  waiters: { text: counting('from waiters') },
} satisfies Record<keyof Omit<Totals, 'oldestDueMs' | 'storage'>, { text: string; isTimed?: true }>;

interface Rows {
  counts: Record<keyof typeof COUNTS, Row | undefined>;
  storage: { bytes: number; unused: number | null } | undefined;
}

export const readTotals = longRead(async (queries: Queries, { nowMs }: { nowMs: Millis }): Promise<Rows> => {
  // All queries are sent at once, so that a remote database costs one round trip.
  const read = async ([name, count]: [string, { text: string; isTimed?: true }]): Promise<
    [string, Row | undefined]
  > => {
    const [row] = await queries.query<Row>(count.text, count.isTimed ? [nowMs] : []);
    return [name, row];
  };
  const [counts, [storage]] = await Promise.all([
    Promise.all(Object.entries(COUNTS).map(read)),
    queries.query<NonNullable<Rows['storage']>>('select s.bytes, s.unused from database_size s', []),
  ]);
  return { counts: Object.fromEntries(counts) as Rows['counts'], storage };
}, decodeTotals);

export function decodeTotals({ counts, storage }: Rows, { nowMs }: { nowMs: Millis }): Totals {
  const dueMs = Object.values(counts).flatMap((row) => row?.first_due_at_ms ?? []);
  const counted = Object.entries(counts).map(([name, row]) => [name, row?.counted ?? 0]);
  return {
    ...(Object.fromEntries(counted) as Record<keyof Rows['counts'], number>),
    oldestDueMs: nowMs - Math.min(nowMs, ...dueMs),
    storage: { bytes: storage?.bytes ?? 0, ...(storage?.unused != null && { unusedBytes: storage.unused }) },
  };
}
