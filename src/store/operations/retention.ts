/** Removes expired data from the store in chunks so small that no other work waits long (P13). */
import type { ProjectId } from '../../engine/model.ts';
import type { Queries, Transaction } from '../driver.ts';
import { dropUnusedKeys, projectsOfUnusedKeys } from './lanes/flow-commands.ts';
import { deletedQueues, emptyQueue } from './lanes/queue-commands.ts';
import type { WriteContext } from './logs/log-writer.ts';
import { write } from './operation.ts';
import { dropMinutes } from './reports/minutes.ts';

export interface DropExpiredArgs {
  logsBeforeMs: number;
  deadBeforeMs: number;
  minutesBeforeMs: number;
  keysUsedBeforeMs: number;
  nowMs: number;
  leadMs?: number;
  rowsMax: number;
}

const DAY_MS = 86_400_000;
const ALL_LOGS = { logs: 'logs', details: 'log_details' };

/** Deleted queues examined in one chunk. */
const QUEUES_MAX = 16;

/** Drops about `rowsMax` expired rows at most. Returns whether to call `dropExpired` again at once. */
export const dropExpired = write(
  {
    weight: ({ rowsMax }) => ({ rows: rowsMax }),
    touches: (args) => ({ find: (queries) => projectsOfExpired(queries, args) }),
  },
  async (context: WriteContext, args: DropExpiredArgs): Promise<boolean> => {
    const { tx, locked } = context;
    // A move copies and compares rows, so nothing is dropped until the move ends, which takes minutes.
    if ((await context.placement.moving()).size > 0) return false;
    let budget = args.rowsMax;
    // Queues whose deletion was interrupted by a crash, or whose last attempt in flight has ended.
    const queues = await deletedQueues(tx, QUEUES_MAX);
    for (const { project_id, id } of queues) {
      if (!locked.has(project_id)) continue; // found after the projects were locked
      const queue = { projectId: project_id, queueId: id };
      if (await emptyQueue(context, { ...queue, ...args, count: args.rowsMax })) return true;
    }
    if (queues.length === QUEUES_MAX) return true;
    budget -= await dropLogs(context, args, budget);
    if (budget > 0) budget -= await dropDead(tx, args.deadBeforeMs, budget);
    if (budget > 0) budget -= await dropRuns(tx, args, budget);
    if (budget > 0) budget -= await dropDeduplications(tx, args.nowMs, budget);
    if (budget > 0) budget -= await dropMinutes(tx, args.minutesBeforeMs, budget);
    if (budget > 0) {
      const { keysUsedBeforeMs: usedBeforeMs, nowMs } = args;
      budget -= await dropUnusedKeys(context, { usedBeforeMs, nowMs, rowsMax: budget });
    }
    return budget <= 0;
  },
);

/** The projects whose lanes `dropExpired` touches. Most other dropped rows are never written again, and need no lock. */
export async function projectsOfExpired(
  queries: Queries,
  { keysUsedBeforeMs, rowsMax }: DropExpiredArgs,
): Promise<ProjectId[]> {
  const queues = await deletedQueues(queries, QUEUES_MAX);
  const ofKeys = await projectsOfUnusedKeys(queries, { usedBeforeMs: keysUsedBeforeMs, rowsMax });
  return [...queues.map(({ project_id }) => project_id), ...ofKeys];
}

/**
 * Drops runs that ended before the oldest log entry, with their journals. Failed runs are kept while they are in the
 * DLQ.
 */
async function dropRuns(
  tx: Transaction,
  { logsBeforeMs, deadBeforeMs }: DropExpiredArgs,
  rowsMax: number,
): Promise<number> {
  const ended = await tx.query<{ key: number }>(
    `select key from runs where completed_at_ms is not null and dead_key is null and completed_at_ms < ?
     order by completed_at_ms, key limit ?`,
    [logsBeforeMs, rowsMax],
  );
  const failed = await tx.query<{ key: number }>(
    `select r.key from runs r where r.dead_key is not null and r.completed_at_ms < ?
       and not exists lookup (select 1 from dead d where d.key = r.dead_key)
     order by r.completed_at_ms, r.key limit ?`,
    [Math.min(logsBeforeMs, deadBeforeMs), rowsMax - ended.length],
  );
  const keys = [...ended, ...failed].map(({ key }) => key);
  return keys.length === 0 ? 0 : dropJournals(tx, keys, rowsMax);
}

/** Drops up to `rowsMax` journal entries, each journal from its end, and the runs without remaining entries. */
async function dropJournals(tx: Transaction, runKeys: readonly number[], rowsMax: number): Promise<number> {
  const entries = await tx.query<{ run_key: number; position: number; key: number }>(
    'select run_key, position, key from journal where run_key in (??) order by run_key, position desc limit ?',
    [runKeys, rowsMax],
  );
  const cut = entries.length === rowsMax ? entries.at(-1) : undefined;
  const whole = cut
    ? [...new Set(entries.map(({ run_key }) => run_key))].filter((key) => key !== cut.run_key)
    : runKeys;
  await tx.send('delete from journal where run_key in (??)', [whole]);
  if (cut) await tx.send('delete from journal where run_key = ? and position >= ?', [cut.run_key, cut.position]);
  await tx.send('delete from invocations where run_key in (??)', [whole]);
  await tx.send('delete from runs where key in (??)', [whole]);
  await dropUnreferencedContents(tx, [...new Set([...whole, ...entries.map(({ key }) => key)])]);
  return Math.min(rowsMax, entries.length + whole.length);
}

/**
 * Drops the contents of `keys` to which no row refers. A log entry or a DLQ entry refers to each content for longer than
 * its message does. So a check of the content whenever such an entry is dropped is enough, and a scan of all contents is
 * not needed.
 */
export async function dropUnreferencedContents(tx: Transaction, keys: readonly number[]): Promise<void> {
  await tx.send(
    `delete from contents where key in (??)
       and not exists lookup (select 1 from messages m where m.key = contents.key)
       and not exists lookup (select 1 from logs l where l.message_key = contents.key)
       and not exists lookup (select 1 from dead d where d.key = contents.key)
       and not exists lookup (select 1 from journal j where j.key = contents.key)
       and not exists lookup (select 1 from runs r where r.key = contents.key)`,
    [keys],
  );
}

/** Drops log entries that are not dropped as whole days. These are all entries if logs are kept for less than a day. */
async function dropLogs(
  { tx, unpartitionedLogs }: WriteContext,
  { logsBeforeMs: beforeMs, nowMs, leadMs = 0 }: DropExpiredArgs,
  rowsMax: number,
): Promise<number> {
  const { logs, details } = nowMs - leadMs - beforeMs < DAY_MS ? ALL_LOGS : unpartitionedLogs;
  let dropped = 0;
  for await (const projectId of projectsIn(tx, logs)) {
    const rows = await tx.query<{ at_ms: number; seq: number; message_key: number }>(
      `select at_ms, seq, message_key from ${logs} where project_id = ? and at_ms < ? order by at_ms, seq limit ?`,
      [projectId, beforeMs, rowsMax - dropped],
    );
    const last = rows.at(-1);
    if (last) {
      await tx.send(`delete from ${logs} where project_id = ? and (at_ms, seq) <= (?, ?)`, [
        projectId,
        last.at_ms,
        last.seq,
      ]);
      await tx.send(`delete from ${details} where seq in (??)`, [rows.map(({ seq }) => seq)]);
      await dropUnreferencedContents(tx, [...new Set(rows.map((row) => row.message_key))]);
    }
    dropped += rows.length;
    if (dropped >= rowsMax) break;
  }
  return dropped;
}

async function dropDead(tx: Transaction, beforeMs: number, rowsMax: number): Promise<number> {
  let dropped = 0;
  for await (const projectId of projectsIn(tx, 'dead')) {
    const rows = await tx.query<{ key: number }>(
      'select key from dead where project_id = ? and failed_at_ms < ? order by failed_at_ms, key limit ?',
      [projectId, beforeMs, rowsMax - dropped],
    );
    const keys = rows.map(({ key }) => key);
    if (keys.length > 0) {
      await tx.send('delete from dead where key in (??)', [keys]);
      await dropUnreferencedContents(tx, keys);
    }
    dropped += keys.length;
    if (dropped >= rowsMax) break;
  }
  return dropped;
}

async function dropDeduplications(tx: Transaction, nowMs: number, rowsMax: number): Promise<number> {
  const rows = await tx.query<{ project_id: number; hash: string }>(
    'select project_id, hash from deduplications where expires_at_ms <= ? order by expires_at_ms limit ?',
    [nowMs, rowsMax],
  );
  for (const { project_id, hash } of rows) {
    await tx.send('delete from deduplications where project_id = ? and hash = ?', [project_id, hash]);
  }
  return rows.length;
}

/** The projects that have rows in `table`. Each project costs one step in the table's primary key. */
async function* projectsIn(tx: Transaction, table: string): AsyncGenerator<number> {
  let last = -1;
  while (true) {
    const [row] = await tx.query<{ project_id: number | null }>(
      `select min(project_id) as project_id from ${table} where project_id > ?`,
      [last],
    );
    if (!row || row.project_id === null) return;
    last = row.project_id;
    yield last;
  }
}
