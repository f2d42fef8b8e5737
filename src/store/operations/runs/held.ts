/**
 * How is a run of many messages begun in several transactions, so that nothing of it happens before it is whole?
 *
 * Until then it is stored as one that is cancelled and of which messages are left (`ending_runs`): nobody claims these,
 * finds the run active, or drops it. Its `dead_key` is the entry of the DLQ that it is to take the place of, which no
 * other cancelled run has. `completed_at_ms` is the time until which the next piece must come. After that it becomes
 * what it is stored as.
 */
import { lineOf } from '../../../engine/lanes/origin-line.ts';
import type { ProjectId } from '../../../engine/model.ts';
import type { Transaction } from '../../driver.ts';
import { FlowLanes, flowRefsOf } from '../lanes/flow-lanes.ts';
import { LINE } from '../lanes/lines.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { timesOf } from './ending-rows.ts';
import { eventOfRun } from './journal-rows.ts';
import { RUN_STATE } from './run-rows.ts';

/** Longer than a transaction that goes through may wait for anything. */
const HELD_MS = 30_000;

/** Whether the run `r` is not whole yet. */
export const IS_HELD = `(r.state = ${RUN_STATE.RUN_CANCELED} and r.dead_key is not null)`;

interface HeldRun {
  projectId: ProjectId;
  runKey: number;
  nowMs: number;
}

/** Keeps the run for the next piece. `deadKey`: the entry of the DLQ that it is to take the place of. */
export async function hold(
  tx: Transaction,
  { projectId, runKey, isFirst, nowMs }: HeldRun & { isFirst: boolean },
  deadKey: number,
): Promise<void> {
  if (isFirst) await tx.insertMany('ending_runs', ['key', 'project_id'], [[runKey, projectId]]);
  await tx.send('update runs set state = ?, dead_key = ?, completed_at_ms = ? where key = ?', [
    ...[RUN_STATE.RUN_CANCELED, deadKey, nowMs + HELD_MS, runKey],
  ]);
}

/** Whether the run is still kept. */
export async function isHeld(tx: Transaction, runKey: number): Promise<boolean> {
  const [row] = await tx.query(
    `select 1 as one from ending_runs e lookup runs r on (r.key = e.key) where e.key = ? and ${IS_HELD}`,
    [runKey],
  );
  return row !== undefined;
}

/** How many messages of the run wait. Programs that know only of runs that are over may have cancelled some. */
export async function countWaiting(tx: Transaction, runKey: number): Promise<number> {
  const [row] = await tx.query<{ count: number }>('select count(*) as count from messages where run_key = ?', [runKey]);
  return row?.count ?? 0;
}

/** Makes the run an active one, and its messages some that may be claimed. */
export async function letGo(context: WriteContext, { projectId, runKey, nowMs }: HeldRun): Promise<void> {
  const { tx, due } = context;
  await tx.send(
    `update runs set state = ${RUN_STATE.RUN_STARTED}, dead_key = null, completed_at_ms = null where key = ?`,
    [runKey],
  );
  await tx.send('delete from ending_runs where key = ?', [runKey]);
  const places = await tx.query<{ origin: string; line: number; flow_key: string | null; due_at_ms: number }>(
    'select origin, line, flow_key, min(due_at_ms) as due_at_ms from messages where run_key = ? group by origin, line, flow_key',
    [runKey],
  );
  for (const { origin, line, due_at_ms } of places) {
    if (line === LINE.origin) due.noteWaitingLine(lineOf(projectId, origin));
    else if (line === LINE.due) due.note(due_at_ms);
  }
  const flows = new FlowLanes(tx, nowMs);
  await flows.load(flowRefsOf(places.map(({ flow_key }) => ({ project_id: projectId, flow_key }))));
  await flows.save(due);
}

/** Makes those of the runs that are kept cancelled ones; `cancelLeft` does the rest. */
export async function cutOff({ tx, logs }: WriteContext, runKeys: readonly number[], nowMs: number): Promise<void> {
  if (runKeys.length === 0) return;
  const held = await tx.query<{ key: number }>(`select r.key from runs r where r.key in (??) and ${IS_HELD}`, [
    runKeys,
  ]);
  const ended = await timesOf(
    tx,
    held.map(({ key }) => ({ runKey: key, atMs: nowMs })),
  );
  await tx.updateMany(
    'runs',
    'key',
    ['dead_key', 'completed_at_ms'],
    [...ended].map(([runKey, { atMs }]) => [runKey, null, atMs]),
  );
  await logs.append(
    tx,
    [...ended].map(([runKey, { projectId, atMs }]) => eventOfRun({ projectId, runKey, state: 'RUN_CANCELED', atMs })),
  );
}

/** Of `ending_runs e left lookup runs r`: leaves out what is kept for a next piece that may still come. */
export const IS_LEFT = `(not ${IS_HELD} or r.completed_at_ms <= ? or r.completed_at_ms > ?)`;

/** The parameters of `IS_LEFT`. A time further ahead than it can be is of a clock that was set back. */
export function leftAt(nowMs: number): number[] {
  return [nowMs, nowMs + HELD_MS];
}

/** When the first of what is kept is not kept any longer; `Infinity`: nothing is. */
export async function heldUntilMs(tx: Transaction): Promise<number> {
  const [row] = await tx.query<{ until_ms: number | null }>(
    `select min(r.completed_at_ms) as until_ms from ending_runs e lookup runs r on (r.key = e.key) where ${IS_HELD}`,
    [],
  );
  return row?.until_ms ?? Infinity;
}
