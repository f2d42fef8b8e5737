/** Releases claims whose attempt will never report an outcome, because the worker drains or its process died. */
import type { ClaimRef, ClaimToken } from '../../../engine/model.ts';
import type { Queries, SqlValue } from '../../driver.ts';
import { flowRefsOf } from '../lanes/flow-lanes.ts';
import { projectsWithWaiting } from '../lanes/project-gate.ts';
import { releaseNext } from '../lanes/release-next.ts';
import { WAIT_STATE, waitStateBehindQueue } from '../lanes/wait-states.ts';
import { excluding } from '../locking/placement.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { cancelAtOnce, ENDING_FIELDS, type EndingRow } from '../messages/cancel.ts';
import { nextWaitState, pausedQueuesOf } from '../messages/settle.ts';
import { read, write } from '../operation.ts';

export interface ReleaseArgs {
  claims: ClaimRef[];
  nowMs: number;
}

/**
 * Releases claims uncounted and makes their messages due at once, because the end of a worker is not a failure of the
 * endpoint. Stale claims are skipped.
 */
export const release = write(
  {
    weight: ({ claims }) => ({ rows: claims.length }),
    touches: ({ claims }) => ({
      messages: claims.map(({ key }) => key),
      writes: new Set(claims.map(({ projectId }) => projectId)),
    }),
  },
  async (context: WriteContext, { claims, nowMs }: ReleaseArgs): Promise<void> => {
    const tokens = new Map(claims.map(({ key, claimToken }) => [key, claimToken]));
    const rows = await context.tx.query<EndingRow>(
      `select ${ENDING_FIELDS} from messages m where key in (??) and claim_token is not null order by key for update`,
      [[...tokens.keys()]],
    );
    const own = rows.filter((row) => tokens.get(row.key) === row.claim_token);
    await releaseRows(context, own, nowMs);
  },
);

/**
 * Releases all claims of earlier processes and returns the number of these claims (P7, for SQLite). `upToToken` is the
 * highest token of these claims; if absent, all claims are released. Only for a store with a single worker, because this
 * command locks no project. Only the index of claimed messages is read, so a million waiting messages do not delay a
 * start.
 */
export const releaseAll = write(
  async (
    context: WriteContext,
    { nowMs, upToToken = Number.MAX_SAFE_INTEGER }: { nowMs: number; upToToken?: ClaimToken | undefined },
  ): Promise<number> => {
    const rows = await context.tx.query<EndingRow>(
      `select ${ENDING_FIELDS} from messages m where claim_token is not null and claim_token <= ?
       order by project_id, key for update`,
      [upToToken],
    );
    await releaseRows(context, rows, nowMs);
    // The limit of projects may have been raised or removed since messages began to wait for it.
    await releaseNext(context, { projects: await projectsWithWaiting(context.tx) }, nowMs);
    while ((await releaseChunk(context, { nowMs })) > 0);
    return rows.length;
  },
);

/** The highest token of a claim, or 0 if there are no claims. Later claims have higher tokens. */
export const lastClaim = read(async (queries: Queries): Promise<number> => {
  const [row] = await queries.query<{ token: number | null }>(
    'select max(claim_token) as token from messages where claim_token is not null',
  );
  return row?.token ?? 0;
});

/** Messages that `releaseUnlimited` releases at a time. */
const RELEASED_MAX = 500;

/**
 * Releases some of the messages that wait for their project although projects no longer have a limit. Locks the projects,
 * and returns the number of released messages. While projects have a limit, claims release such messages.
 */
export const releaseUnlimited = write(
  { weight: () => ({ rows: RELEASED_MAX }), touches: () => ({ find: projectsWithWaiting }) },
  releaseChunk,
);

async function releaseChunk(context: WriteContext, { nowMs }: { nowMs: number }): Promise<number> {
  const { tx, placement, due, limits } = context;
  if (limits.parallelismMax > 0) return 0;
  const { and, params } = excluding(await placement.moving());
  const rows = await tx.query<{ key: number; project_id: number; flow_key: string | null }>(
    `select key, project_id, flow_key from messages where claim_token is null and wait_state = ${WAIT_STATE.project}${and}
     order by project_id, due_at_ms, key limit ?`,
    [...params, RELEASED_MAX],
  );
  if (rows.length === 0) return 0;
  placement.require(rows.map(({ project_id }) => project_id));
  await tx.updateMany(
    'messages',
    'key',
    ['wait_state'],
    rows.map(({ key, flow_key }): SqlValue[] => [key, waitStateBehindQueue(flow_key)]),
  );
  due.note(nowMs);
  await releaseNext(context, { flowKeys: flowRefsOf(rows) }, nowMs);
  return rows.length;
}

/** Makes the messages due at once. Messages marked for cancellation are no longer in flight, so they are cancelled. */
async function releaseRows(context: WriteContext, rows: readonly EndingRow[], nowMs: number): Promise<void> {
  const cancelled = rows.filter((row) => row.cancel_requested_at_ms !== null);
  if (cancelled.length > 0) await cancelAtOnce(context, cancelled, { nowMs });
  const kept = rows.filter((row) => row.cancel_requested_at_ms === null);
  const pausedQueues = await pausedQueuesOf(context.tx, kept);
  if (kept.length > 0) {
    await context.tx.updateMany(
      'messages',
      'key',
      ['due_at_ms', 'claimed_at_ms', 'claim_token', 'worker', 'wait_state'],
      kept.map((row): SqlValue[] => [row.key, nowMs, null, null, null, nextWaitState(row, pausedQueues)]),
    );
    context.due.note(nowMs);
  }
  const projects = new Set(rows.map(({ project_id }) => project_id));
  await releaseNext(context, { flowKeys: flowRefsOf(rows), projects }, nowMs);
}
