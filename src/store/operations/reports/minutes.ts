/** Saves, lists and drops the counts of a project's messages and runs per minute. */
import { COUNTS_OF_MINUTES, emptyMinute, type Minute } from '../../../engine/minutes/counts.ts';
import type { InProject, Millis } from '../../../engine/model.ts';
import type { Queries, Transaction } from '../../driver.ts';
import { mapInBatches } from '../lists/read-page.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { longRead, write } from '../operation.ts';

const BUCKETS = Array.from({ length: 12 }, (_, index) => index);
const LATENCY = BUCKETS.map((index) => `latency_${index}`);
const LAG = BUCKETS.map((index) => `lag_${index}`);
const ADDED = [...COUNTS_OF_MINUTES.map(columnOf), ...LATENCY, ...LAG];

const ADD = `insert into minutes (project_id, at_ms, ${ADDED.join(', ')}) values (?, ?, ${ADDED.map(() => '?').join(', ')})
  on conflict (project_id, at_ms) do update set ${ADDED.map((name) => `${name} = minutes.${name} + excluded.${name}`).join(', ')}`;

const LIST = `select at_ms, ${ADDED.join(', ')} from minutes
  where project_id = ? and at_ms >= ? and at_ms <= ? order by at_ms limit ?`;

/** Adds the counts of `minutes` to the saved counts. The class `accept` lets commands that advance messages run first. */
export const addMinutes = write(
  { class: () => 'accept', weight: ({ minutes }) => ({ rows: minutes.length }) },
  async ({ tx }: WriteContext, { projectId, minutes }: InProject & { minutes: readonly Minute[] }): Promise<void> => {
    for (const minute of minutes) {
      const counts = COUNTS_OF_MINUTES.map((name) => minute[name]);
      await tx.send(ADD, [projectId, minute.atMs, ...counts, ...minute.latency, ...minute.lag]);
    }
  },
);

type MinuteRow = Record<string, number>;

/** The first `count` saved minutes, oldest first. Each begins at or after `fromMs`, and at or before `toMs`. */
export const listMinutes = longRead(
  (
    queries: Queries,
    { projectId, fromMs, toMs, count }: InProject & { fromMs: Millis; toMs: Millis; count: number },
  ): Promise<MinuteRow[]> => queries.query<MinuteRow>(LIST, [projectId, fromMs, toMs, count]),
  (rows, _, pause) => mapInBatches(rows, decode, pause),
);

function decode(row: MinuteRow): Minute {
  const of = (column: string): number => row[column] ?? 0;
  const minute = { ...emptyMinute(of('at_ms')), latency: LATENCY.map(of), lag: LAG.map(of) };
  for (const name of COUNTS_OF_MINUTES) minute[name] = of(columnOf(name));
  return minute;
}

/** The column of a count: `failed_attempts` for `failedAttempts`. */
function columnOf(count: string): string {
  return count.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Drops up to `rowsMax` minutes of all projects that began before `beforeMs`. Returns their number. */
export async function dropMinutes(tx: Transaction, beforeMs: Millis, rowsMax: number): Promise<number> {
  const rows = await tx.query<{ at_ms: number; project_id: number }>(
    'select at_ms, project_id from minutes where at_ms < ? order by at_ms, project_id limit ?',
    [beforeMs, rowsMax],
  );
  const last = rows.at(-1);
  if (last) await tx.send('delete from minutes where (at_ms, project_id) <= (?, ?)', [last.at_ms, last.project_id]);
  return rows.length;
}
