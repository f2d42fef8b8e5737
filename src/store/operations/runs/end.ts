/** How does a run end: once, with everything that is left of it, and with the messages that follow (contract W 12)? */
import type { Saved } from '../../../engine/messages/accepted.ts';
import type { EndedAs } from '../../../engine/runs/stores.ts';
import type { SqlValue, Transaction } from '../../driver.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { insertMessages } from '../messages/accept.ts';
import { cancelAtOnce, mark } from '../messages/cancel.ts';
import { projectsSharedBy, weightOf } from '../messages/new-messages.ts';
import type { StoredNewMessage } from '../messages/rows.ts';
import { merged } from '../operation.ts';
import type { StoredEnding } from './ending-rows.ts';
import { eventOfRun } from './journal-rows.ts';
import { FAILURE_STATE, RUN_STATE, runStateOf } from './run-rows.ts';

export interface EndRunsArgs {
  endings: { ending: StoredEnding; follows: StoredNewMessage[] }[];
  nowMs: number;
}

const DROPPED: Saved = { state: 'dropped' };

/** Ends the runs of all `commands` in a handful of statements. */
export const endRuns = merged(
  {
    weight: ({ endings }) => {
      const { rows, bytes } = weightOf(endings.flatMap(({ follows }) => follows));
      return { rows: endings.length + rows, bytes };
    },
    touches: ({ endings }, limits) => ({
      runs: endings.map(({ ending }) => ending.runKey),
      projects: projectsSharedBy(
        endings.flatMap(({ follows }) => follows),
        limits,
      ),
    }),
  },
  async (context: WriteContext, commands: readonly EndRunsArgs[]): Promise<EndedAs[][]> => {
    const nowMs = Math.max(...commands.map((command) => command.nowMs));
    const all = commands.flatMap(({ endings }) => endings);
    const verdicts = await judge(
      context.tx,
      all.map(({ ending }) => ending),
    );
    const ended = all.filter(({ ending }) => verdicts.get(ending) === 'ended');
    await writeEndings(
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
        return { kind, follows: end.follows.map((message) => savedByMessage.get(message) ?? DROPPED) };
      }),
    );
  },
);

/** Which of `endings` find their run unchanged. If two are for one run, only the first can. */
export async function judge(
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

interface LeftRow {
  key: number;
  project_id: number;
  run_key: number;
  claim_token: number | null;
  cancel_requested_at_ms: number | null;
  queue_id: number | null;
  queue_slot: number | null;
  flow_key: string | null;
  line: number;
}

/**
 * Ends active runs. `deadKey` is the message that failed for good and ended its run. That message is finished already,
 * as are all messages settled with it. Everything else that is left of the run ends too: messages, waiters, pending
 * events.
 */
export async function writeEndings(
  context: WriteContext,
  endings: readonly { ending: StoredEnding; deadKey: number | null }[],
  nowMs: number,
): Promise<void> {
  if (endings.length === 0) return;
  const { tx, logs } = context;
  const runKeys = endings.map(({ ending }) => ending.runKey);
  const ended = await timesOf(tx, endings);
  await tx.updateMany(
    'runs',
    'key',
    ['state', 'completed_at_ms', 'response', 'dead_key', 'failure_key', 'failure_state'],
    endings.map(({ ending, deadKey }): SqlValue[] => [
      ending.runKey,
      ending.state,
      ended.get(ending)?.atMs ?? ending.atMs,
      ending.response,
      deadKey,
      ending.failureKey,
      ending.failureKey === null ? null : FAILURE_STATE.inProgress,
    ]),
  );
  await tx.send('delete from waiters where run_key in (??)', [runKeys]);
  await tx.send('delete from mail where run_key in (??)', [runKeys]);
  await logs.append(
    tx,
    [...ended].map(([{ runKey, state }, { projectId, atMs }]) =>
      eventOfRun({ projectId, runKey, state: runStateOf(state), atMs }),
    ),
  );
  const left = await tx.query<LeftRow>(
    // The plus keeps the planner from walking all messages in order instead.
    `select key, project_id, run_key, claim_token, cancel_requested_at_ms, queue_id, queue_slot, flow_key, line
     from messages where run_key in (??) order by +key for update`,
    [runKeys],
  );
  if (left.length === 0) return;
  const asked = new Set(
    endings.flatMap(({ ending }) => (ending.state === RUN_STATE.RUN_CANCELED ? [ending.runKey] : [])),
  );
  for (const isUnasked of [false, true]) {
    const rows = left.filter((row) => asked.has(row.run_key) !== isUnasked);
    const waiting = rows.filter((row) => row.claim_token === null);
    const inFlight = rows.filter((row) => row.claim_token !== null && row.cancel_requested_at_ms === null);
    await cancelAtOnce(context, waiting, { nowMs, isUnasked });
    await mark(context, inFlight, nowMs, isUnasked);
  }
}

/** When each run ends: never before an event that its log already has, even if a clock was set back. */
async function timesOf(
  tx: Transaction,
  endings: readonly { ending: StoredEnding }[],
): Promise<Map<StoredEnding, { projectId: number; atMs: number }>> {
  const rows = await tx.query<{ key: number; project_id: number; last_ms: number | null }>(
    `select r.key, r.project_id, (select max(l.at_ms) from logs l where l.run_key = r.key) as last_ms
     from runs r where r.key in (??) order by r.key`,
    [endings.map(({ ending }) => ending.runKey)],
  );
  const rowByKey = new Map(rows.map((row) => [row.key, row]));
  return new Map(
    endings.map(({ ending }) => {
      const row = rowByKey.get(ending.runKey);
      if (!row) throw new Error(`run ${ending.runKey} is missing`);
      return [ending, { projectId: row.project_id, atMs: Math.max(ending.atMs, row.last_ms ?? 0) }];
    }),
  );
}
