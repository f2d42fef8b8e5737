/** How much is unfinished in the whole store? Every count ends somewhere, and reads an index that has nothing else. */
import type { Millis } from '../../engine/model.ts';
import { COUNTED_OF_ALL_MAX, type Totals } from '../../engine/unfinished.ts';
import type { Queries } from '../driver.ts';
import { LINE } from './lanes/lines.ts';
import { longRead } from './operation.ts';
import { RUN_STATE } from './runs/run-rows.ts';

interface Row {
  counted: number;
  first_due_at_ms?: number | null;
}

/** The condition of the partial index of what stands in `line`, in SQL. */
function standingIn(line: keyof typeof LINE): string {
  return `from messages where claim_token is null and line = ${LINE[line]}`;
}

/** Counts the rows behind `from`, and finds the earliest `due` of them. */
function counting(from: string, due?: string): string {
  const first = due === undefined ? '' : ', min(w.due) as first_due_at_ms';
  return `select count(*) as counted${first} from (select ${due ?? '1'} as due ${from} limit ${COUNTED_OF_ALL_MAX}) w`;
}

const COUNTS = {
  due: { text: counting(`${standingIn('due')} and due_at_ms <= ?`, 'due_at_ms'), isTimed: true },
  scheduled: { text: counting(`${standingIn('due')} and due_at_ms > ?`), isTimed: true },
  origin: { text: counting(standingIn('origin'), 'due_at_ms') },
  project: { text: counting(standingIn('project'), 'due_at_ms') },
  flow: { text: counting(standingIn('flow')) },
  queue: { text: counting(standingIn('queue')) },
  active: { text: counting('from messages where claim_token is not null') },
  dead: { text: counting('from dead') },
  runs: { text: counting(`from runs where state = ${RUN_STATE.RUN_STARTED}`) },
  waiters: { text: counting('from waiters') },
} satisfies Record<keyof Omit<Totals, 'oldestDueAtMs'>, { text: string; isTimed?: true }>;

type Rows = Record<keyof typeof COUNTS, Row | undefined>;

export const readTotals = longRead(async (queries: Queries, { nowMs }: { nowMs: Millis }): Promise<Rows> => {
  // Together: a database behind a network is asked the next question before it has answered the one before.
  const read = async ([name, count]: [string, { text: string; isTimed?: true }]): Promise<
    [string, Row | undefined]
  > => {
    const [row] = await queries.query<Row>(count.text, count.isTimed ? [nowMs] : []);
    return [name, row];
  };
  return Object.fromEntries(await Promise.all(Object.entries(COUNTS).map(read))) as Rows;
}, decodeTotals);

function decodeTotals(rows: Rows, { nowMs }: { nowMs: Millis }): Totals {
  const dueMs = Object.values(rows).flatMap((row) => row?.first_due_at_ms ?? []);
  const counts = Object.fromEntries(Object.entries(rows).map(([name, row]) => [name, row?.counted ?? 0]));
  return {
    ...(counts as Record<keyof Rows, number>),
    ...(dueMs.length > 0 && { oldestDueAtMs: Math.min(nowMs, ...dueMs) }),
  };
}
