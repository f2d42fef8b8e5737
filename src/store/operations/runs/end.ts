/** Ends runs, cancels their remaining messages, and saves the messages that follow (contract W 12). */
import type { Saved } from '../../../engine/messages/accepted.ts';
import type { NewMessage, RunEnding } from '../../../engine/model.ts';
import type { RunEndResult } from '../../../engine/runs/stores.ts';
import type { Queries, SqlValue, Transaction } from '../../driver.ts';
import { excludingMoving } from '../locking/placement.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { insertMessages } from '../messages/accept.ts';
import { cancelOrMark, ENDING_FIELDS, type EndingRow } from '../messages/cancel.ts';
import { encodeNewMessage, projectOf, projectsSharedBy, type StoredNewMessage, weightOf } from '../messages/rows.ts';
import { merged, write } from '../operation.ts';
import { encodeEnding, endTimesOf, type StoredEnding } from './ending-rows.ts';
import { eventOfRun } from './journal-rows.ts';
import { FAILURE_STATE, REVIVING, RUN_STATE, runStateOf } from './run-rows.ts';

export interface EndRunsArgs<Ending = StoredEnding, Message = StoredNewMessage> {
  endings: { ending: Ending; follows: Message[] }[];
  nowMs: number;
}

const DROPPED: Saved = { state: 'dropped' };

/** Messages that one transaction cancels, unless `StoreLimits` sets another number. */
const CANCELLED_MAX = 200;
/** Ending runs examined in one chunk. */
const RUNS_MAX = 20;
/** How long a run that is being revived waits for its next chunk: longer than a transaction can take. */
export const CHUNK_WAIT_MS = 30_000;

/**
 * Ends each run that has not changed since its end was decided: cancels its waiting messages, marks messages in flight,
 * removes its waiters and pending events, and saves `follows`. A message for the journal of an ended run is not saved,
 * except the result of an invocation for the log of a failed run.
 */
export const endRuns = merged(
  {
    weight: ({ endings }) => {
      const { rows, bytes } = weightOf(endings.flatMap(({ follows }) => follows));
      return { rows: endings.length + rows, bytes };
    },
    touches: ({ endings }, limits) => ({
      projects: [
        ...endings.map(({ ending }) => ending.projectId),
        ...projectsSharedBy(
          endings.flatMap(({ follows }) => follows),
          limits,
        ),
      ],
      writes: endings.flatMap(({ follows }) => follows.map(projectOf)),
    }),
  },
  async (context: WriteContext, commands: readonly EndRunsArgs[]): Promise<RunEndResult[][]> => {
    const nowMs = Math.max(...commands.map((command) => command.nowMs));
    const all = commands.flatMap(({ endings }) => endings);
    const verdicts = await checkEndings(
      context.tx,
      all.map(({ ending }) => ending),
    );
    const ended = all.filter(({ ending }) => verdicts.get(ending) === 'ended');
    const isMoreLeft = await writeEndings(
      context,
      ended.map(({ ending }) => ({ ending, deadKey: null })),
      nowMs,
    );
    const follows = ended.flatMap((end) => end.follows);
    const saved = follows.length === 0 ? [] : await insertMessages(context, follows, nowMs);
    const savedByMessage = new Map(follows.map((message, index) => [message, saved[index] ?? DROPPED]));
    return commands.map(({ endings }) =>
      endings.map((end) => {
        const kind = verdicts.get(end.ending) ?? 'over';
        if (kind !== 'ended') return { kind };
        const saved = end.follows.map((message) => savedByMessage.get(message) ?? DROPPED);
        return { kind, follows: saved, ...(isMoreLeft && { isMoreLeft }) };
      }),
    );
  },
  ({ endings, nowMs }: EndRunsArgs<RunEnding, NewMessage>) => ({
    endings: endings.map(({ ending, follows }) => ({
      ending: encodeEnding(ending),
      follows: follows.map(encodeNewMessage),
    })),
    nowMs,
  }),
);

/** Checks which of `endings` find their run unchanged. If two endings are of one run, only the first can succeed. */
export async function checkEndings(
  tx: Transaction,
  endings: readonly StoredEnding[],
): Promise<Map<StoredEnding, 'ended' | 'changed' | 'over'>> {
  const rows = await tx.query<{ key: number; state: number; version: number }>(
    'select key, state, version from runs where key in (??) for update',
    [endings.map(({ runKey }) => runKey)],
  );
  const active = new Map(
    rows.filter((row) => row.state === RUN_STATE.RUN_STARTED).map((row) => [row.key, row.version]),
  );
  const verdicts = new Map<StoredEnding, 'ended' | 'changed' | 'over'>();
  for (const ending of endings) {
    const version = active.get(ending.runKey);
    if (version === undefined) verdicts.set(ending, 'over');
    else if (version !== ending.runVersion) verdicts.set(ending, 'changed');
    else {
      verdicts.set(ending, 'ended');
      active.delete(ending.runKey);
    }
  }
  return verdicts;
}

/**
 * Cancels a chunk of the remaining messages of runs that have ended (see `writeEndings`) or whose revival stopped.
 * Returns `'more'` if `cancelRemaining` should be called again at once, otherwise the time of the next call, or
 * `Infinity` if no call is needed.
 */
export const cancelRemaining = write(
  {
    weight: () => ({ rows: CANCELLED_MAX }),
    touches: ({ nowMs }) => ({
      find: async (queries) => (await endingRuns(queries, nowMs)).map(({ project_id }) => project_id),
    }),
  },
  async (context: WriteContext, { nowMs }: { nowMs: number }): Promise<'more' | number> => {
    const { tx, locked } = context;
    const found = await endingRuns(tx, nowMs);
    // A run that has ended in another project since the projects were locked is left for the next call.
    const runs = found.filter(({ project_id }) => locked.has(project_id));
    if (runs.length === 0) return found.length > 0 ? 'more' : nextCancelAtMs(tx, nowMs);
    await cancelReviving(
      context,
      runs.map(({ run_key }) => run_key),
      nowMs,
    );
    const isMoreLeft = await cancelChunk(context, runs, nowMs);
    if (isMoreLeft) return 'more';
    await tx.send('delete from ending_runs where key in (??)', [runs.map(({ run_key }) => run_key)]);
    return found.length === RUNS_MAX || runs.length < found.length ? 'more' : nextCancelAtMs(tx, nowMs);
  },
);

async function nextCancelAtMs(tx: Transaction, nowMs: number): Promise<number> {
  const [row] = await tx.query<{ at_ms: number | null }>(
    'select min(cancel_at_ms) as at_ms from ending_runs where cancel_at_ms > ?',
    [nowMs],
  );
  return row?.at_ms ?? Infinity;
}

/** Sets those of `runKeys` that are being revived to RUN_CANCELED. `cancelRemaining` then cancels their messages. */
export async function cancelReviving(
  { tx, logs }: WriteContext,
  runKeys: readonly number[],
  nowMs: number,
): Promise<void> {
  if (runKeys.length === 0) return;
  const reviving = await tx.query<{ key: number }>(`select key from runs where key in (??) and state = ${REVIVING}`, [
    runKeys,
  ]);
  if (reviving.length === 0) return;
  const times = await endTimesOf(
    tx,
    reviving.map(({ key }) => ({ runKey: key, atMs: nowMs })),
  );
  const ended = [...times];
  await tx.updateMany(
    'runs',
    'key',
    ['state', 'completed_at_ms'],
    ended.map(([runKey, { atMs }]) => [runKey, RUN_STATE.RUN_CANCELED, atMs]),
  );
  await tx.send('update ending_runs set cancel_at_ms = 0 where key in (??)', [ended.map(([runKey]) => runKey)]);
  await logs.append(
    tx,
    ended.map(([runKey, { projectId, atMs }]) => eventOfRun({ projectId, runKey, state: 'RUN_CANCELED', atMs })),
  );
}

/** An ended run with remaining messages. */
interface EndingRun {
  run_key: number;
  project_id: number;
  /** Null if the run was dropped after its retention. */
  state: number | null;
}

/**
 * The first ending runs that are due. A time beyond `CHUNK_WAIT_MS` is of a clock that was set back, and counts as due.
 */
async function endingRuns(queries: Queries, nowMs: number): Promise<EndingRun[]> {
  const { and, params } = await excludingMoving(queries, 'e.project_id');
  return queries.query<EndingRun>(
    `select e.key as run_key, e.project_id, r.state from ending_runs e left lookup runs r on (r.key = e.key)
     where (e.cancel_at_ms <= ? or e.cancel_at_ms > ?)${and} order by e.key limit ?`,
    [nowMs, nowMs + CHUNK_WAIT_MS, ...params, RUNS_MAX],
  );
}

/**
 * Ends active runs with their remaining messages, waiters and pending events. `deadKey` is the dead message that ended
 * the run; this message and all messages settled with it are finished already. Returns whether there are more messages
 * than one transaction cancels. If so, the runs are in `ending_runs`, so that none of the remaining messages is claimed,
 * and `cancelRemaining` cancels these messages, even after a crash.
 */
export async function writeEndings(
  context: WriteContext,
  endings: readonly { ending: StoredEnding; deadKey: number | null }[],
  nowMs: number,
): Promise<boolean> {
  if (endings.length === 0) return false;
  const { tx, logs } = context;
  const runKeys = endings.map(({ ending }) => ending.runKey);
  const ended = await endTimesOf(
    tx,
    endings.map(({ ending }) => ending),
  );
  await tx.updateMany(
    'runs',
    'key',
    ['state', 'completed_at_ms', 'response', 'dead_key', 'failure_key', 'failure_state'],
    endings.map(({ ending, deadKey }): SqlValue[] => [
      ending.runKey,
      ending.state,
      ended.get(ending.runKey)?.atMs ?? ending.atMs,
      ending.response,
      deadKey,
      ending.failureKey,
      ending.failureKey === null ? null : FAILURE_STATE.inProgress,
    ]),
  );
  await tx.send('delete from waiters where run_key in (??)', [runKeys]);
  await tx.send('delete from pending_events where run_key in (??)', [runKeys]);
  await logs.append(
    tx,
    endings.flatMap(({ ending: { runKey, state } }) => {
      const end = ended.get(runKey);
      return end ? [eventOfRun({ ...end, runKey, state: runStateOf(state) })] : [];
    }),
  );
  const runs = endings.map(({ ending: { runKey, state } }) => ({ run_key: runKey, state }));
  const isMoreLeft = await cancelChunk(context, runs, nowMs);
  if (isMoreLeft) {
    await tx.insertMany(
      'ending_runs',
      ['key', 'project_id', 'cancel_at_ms'],
      [...ended].map(([runKey, { projectId }]) => [runKey, projectId, 0]),
    );
  }
  return isMoreLeft;
}

/** Cancels waiting messages of `runs` and marks messages in flight, up to a maximum. Returns whether more are left. */
async function cancelChunk(
  context: WriteContext,
  runs: readonly Pick<EndingRun, 'run_key' | 'state'>[],
  nowMs: number,
): Promise<boolean> {
  const max = context.limits.cancelledTogetherMax ?? CANCELLED_MAX;
  // There is no `order by`, because it would sort all remaining messages. Failure callbacks have no position, and are not
  // cancelled.
  const remaining = await context.tx.query<EndingRow & { run_key: number }>(
    `select ${ENDING_FIELDS} from messages m where run_key in (??) and journal_position is not null
       and (claim_token is null or cancel_requested_at_ms is null) limit ? for update`,
    [runs.map(({ run_key }) => run_key), max + 1],
  );
  const chunk = remaining.slice(0, max).sort((a, b) => a.key - b.key);
  const isCancelled = (state: number | null) => state === RUN_STATE.RUN_CANCELED || state === REVIVING;
  const requested = new Set(runs.filter(({ state }) => isCancelled(state)).map(({ run_key }) => run_key));
  for (const isUnrequested of [false, true]) {
    const rows = chunk.filter((row) => requested.has(row.run_key) !== isUnrequested);
    await cancelOrMark(context, rows, { nowMs, isUnrequested });
  }
  return remaining.length > max;
}
