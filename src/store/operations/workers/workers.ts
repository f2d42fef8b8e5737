/** Records heartbeats, expires workers that send none, and finds the claims of workers that are gone. */
import type { ClaimRef, WorkerId } from '../../../engine/model.ts';
import { NO_PROJECT } from '../../../engine/operator-events/model.ts';
import { LEAD_MS_MAX } from '../../../engine/workers/steady-clock.ts';
import type { HeartbeatResponse, WorkerState } from '../../../engine/workers/store.ts';
import type { Queries } from '../../driver.ts';
import { checkSchema } from '../../migrations/index.ts';
import { accountsVersion } from '../accounts/version.ts';
import { earlier } from '../due-times.ts';
import { ALL_HERE, excludingMoving, projectsHere } from '../locking/placement.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { read, write } from '../operation.ts';
import { insertFacts } from '../reports/operator-events.ts';
import { pollDueWork } from './poll.ts';

export interface HeartbeatArgs extends WorkerState {
  worker: WorkerId;
}

interface WorkerRow {
  id: string;
  beat_at_ms: number;
  /** Negative if the worker has left, whatever the time of its last heartbeat. */
  timeout_ms: number;
  leaving: number;
}

/**
 * Records a heartbeat of `worker`. When `timeoutMs` have passed since the last heartbeat, in the time that all workers
 * share, any other worker may expire this worker. With `isLeaving`, the worker finishes its claims and starts no new
 * ones. `accountsVersion` is the version of the accounts with which the worker checks tokens and signs. `clock` is the
 * worker's copy of the shared time and of its lead over the database's clock; absent before the first heartbeat.
 */
export const heartbeat = write(
  { class: () => 'urgent' },
  async ({ tx, placement }: WriteContext, args: HeartbeatArgs): Promise<HeartbeatResponse> => {
    const { worker, timeoutMs, isLeaving, clock: time } = args;
    await checkSchema(tx);
    const others = await tx.query<WorkerRow>(
      'select id, beat_at_ms, timeout_ms, leaving from workers where id <> ? order by id',
      [worker],
    );
    const wallMs = await tx.nowMs();
    // The shared time never decreases. A heartbeat with a later time was written before the clock was set back.
    const times = others.map((row) => (row.timeout_ms < 0 ? 0 : row.beat_at_ms));
    const supposed = [wallMs + (time?.leadMs ?? 0), time?.nowMs ?? 0, ...times];
    const farMs = wallMs + LEAD_MS_MAX;
    const nowMs = Math.max(wallMs, ...supposed.filter((ms) => ms <= farMs));
    // A heartbeat from a clock that was more than a day ahead counts from now. Otherwise its worker, if dead, would not
    // expire until the clock reaches the time of the heartbeat again. The worker's own row is updated too, so that all
    // workers lock rows in one order.
    if (times.some((ms) => ms > farMs)) {
      await tx.run('update workers set beat_at_ms = ? where timeout_ms >= 0 and beat_at_ms > ?', [nowMs, farMs]);
    }
    const state = [nowMs, timeoutMs, isLeaving ? 1 : 0, args.accountsVersion];
    const known = await tx.run(
      'update workers set beat_at_ms = ?, timeout_ms = ?, leaving = ?, accounts_version = ? where id = ?',
      [...state, worker],
    );
    if (known === 0) {
      await tx.insertMany(
        'workers',
        ['id', 'started_at_ms', 'beat_at_ms', 'timeout_ms', 'leaving', 'accounts_version'],
        [[worker, nowMs, ...state]],
      );
    }
    const isLate = (row: WorkerRow) => row.timeout_ms < 0 || row.beat_at_ms + row.timeout_ms < nowMs;
    const { projects = [] } = args;
    const here = placement === ALL_HERE ? projects : await projectsHere(tx, projects);
    const seen = await pollDueWork(tx, await placement.moving());
    return {
      here,
      wallMs,
      leadMs: nowMs - wallMs,
      wasKnown: known > 0,
      hasLate: others.some(isLate),
      others: others.filter((row) => !isLate(row) && row.leaving === 0).map(({ id }) => id),
      nextDueAtMs: earlier(seen.dueAtMs, seen.wakeAtMs) ?? undefined,
      nextScheduleAtMs: seen.scheduleAtMs ?? undefined,
      nextWaiterAtMs: seen.deadlineMs ?? undefined,
      hasBacklogs: seen.hasBacklogs === 1,
      hasClaims: seen.hasClaims === 1,
      hasEndedRun: seen.hasEnding === 1,
      accountsVersion: seen.accountsVersion,
    };
  },
);

/**
 * Removes the workers that are late or have left, and returns their ids. From then on, no worker owns the claims of the
 * removed workers. If several workers call this command, only one of them gets each id. With `isReported`, facts about
 * the late workers are saved for operator events.
 */
export const expireWorkers = write(
  { class: () => 'urgent' },
  async ({ tx }: WriteContext, { nowMs, isReported }: { nowMs: number; isReported?: boolean }): Promise<WorkerId[]> => {
    const rows = await tx.query<Pick<WorkerRow, 'id' | 'timeout_ms'>>(
      'delete from workers where timeout_ms < 0 or beat_at_ms + timeout_ms < ? returning id, timeout_ms',
      [nowMs],
    );
    const lost = rows.filter(({ timeout_ms }) => timeout_ms >= 0); // the others have left
    if (isReported && lost.length > 0) {
      const firstKey = await tx.reserve('keys and tokens', lost.length);
      await insertFacts(
        tx,
        lost.map(({ id }, index) => ({
          ...{ key: firstKey + index, kind: 'worker_lost', projectId: NO_PROJECT, atMs: nowMs, example: id },
        })),
      );
    }
    return rows.map(({ id }) => id);
  },
);

/**
 * Marks the worker as having left. The row of the worker stays until another worker deletes it and takes over the
 * backlogs. With several cells, a move may have brought claims of this worker whose attempts run in the engine that the
 * worker has for another cell. In that case, the worker stays alive until its last heartbeat times out.
 */
export const leave = write(
  { class: () => 'urgent' },
  async ({ tx, placement }: WriteContext, { worker }: { worker: WorkerId }): Promise<void> => {
    const unless =
      placement === ALL_HERE
        ? ''
        : ' and not exists lookup (select 1 from messages m where claim_token is not null and m.worker = workers.id)';
    await tx.send(`update workers set timeout_ms = -1, leaving = 1 where id = ?${unless}`, [worker]);
  },
);

/**
 * Returns `accountsVersion` (default: the current version), and the live workers whose last heartbeat reported an older
 * version.
 */
export const workersWithOldAccounts = write(
  async (
    { tx }: WriteContext,
    { accountsVersion: wanted }: { accountsVersion?: number },
  ): Promise<{ accountsVersion: number; behind: WorkerId[] }> => {
    const version = wanted ?? (await accountsVersion(tx));
    const rows = await tx.query<{ id: string }>(
      `select id from workers where timeout_ms >= 0 and beat_at_ms + timeout_ms >= ?
       and accounts_version < ? order by id`,
      [await tx.nowMs(), version],
    );
    return { accountsVersion: version, behind: rows.map(({ id }) => id) };
  },
);

interface ClaimRow {
  key: number;
  project_id: number;
  claim_token: number;
}

/**
 * Up to `limit` claims of workers that have no row, or no longer have one. Reads the index of claimed messages, which is
 * as small as the number of attempts in flight.
 */
export const orphanedClaims = read(async (queries: Queries, { limit }: { limit: number }): Promise<ClaimRef[]> => {
  const { and, params } = await excludingMoving(queries);
  const rows = await queries.query<ClaimRow>(
    `select key, project_id, claim_token from messages m
     where claim_token is not null and not exists lookup (select 1 from workers w where w.id = m.worker)${and}
     order by project_id, key limit ?`,
    [...params, limit],
  );
  return rows.map(refOf);
});

/** The claims of one worker, from the index of claimed messages. */
export const claimsOf = read(async (queries: Queries, { worker }: { worker: WorkerId }): Promise<ClaimRef[]> => {
  const rows = await queries.query<ClaimRow>(
    `select key, project_id, claim_token from messages
     where claim_token is not null and worker = ? order by project_id, key`,
    [worker],
  );
  return rows.map(refOf);
});

function refOf({ key, project_id: projectId, claim_token: claimToken }: ClaimRow): ClaimRef {
  return { key, projectId, claimToken };
}
