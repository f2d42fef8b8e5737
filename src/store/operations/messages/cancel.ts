/** Cancels waiting messages at once, and marks messages in flight for cancellation (contract M 6.3.7 and 6.3.8). */
import type { InProjectAt, MessageId, MessageKey } from '../../../engine/model.ts';
import { flowRefsOf } from '../lanes/flow-lanes.ts';
import { releaseNext } from '../lanes/release-next.ts';
import { WAIT_STATE } from '../lanes/wait-states.ts';
import { messageRefsOf } from '../lists/read-page.ts';
import { lastEventTimes, type WriteContext } from '../logs/log-writer.ts';
import { type WriteTraits, write } from '../operation.ts';
import { fieldsOf } from '../table.ts';
import type { MessageRow } from './columns.ts';
import { codeOfLogState, type StoredEvent } from './rows.ts';

interface CancelArgs extends InProjectAt {
  keys: MessageKey[];
  /** Only messages with one of these ids are cancelled; if absent, all messages of `keys`. */
  ids?: MessageId[];
}

const ENDING_COLUMNS = [
  ...(['key', 'project_id', 'claim_token', 'cancel_requested_at_ms', 'run_key'] as const),
  ...(['queue_id', 'queue_permit', 'flow_key', 'wait_state'] as const),
];

/** The columns of an unfinished message that are read to cancel or end it. */
export type EndingRow = Pick<MessageRow, (typeof ENDING_COLUMNS)[number]>;

/** The select list of an `EndingRow` from `messages m`. */
export const ENDING_FIELDS = fieldsOf('m', ENDING_COLUMNS);

const CANCEL_TRAITS: Partial<WriteTraits<CancelArgs>> = {
  weight: ({ keys }) => ({ rows: keys.length }),
  touches: ({ projectId, keys }) => ({ messages: keys, writes: [projectId] }),
};

/**
 * Cancels waiting messages and marks messages in flight. Returns the number of cancelled and marked messages, including
 * messages that were marked earlier.
 */
export const cancelById = write(
  CANCEL_TRAITS,
  async (context: WriteContext, args: CancelArgs): Promise<number> => (await cancelMessages(context, args)).length,
  ({ ids, ...args }: InProjectAt & { ids: MessageId[] }) => ({ ...args, ...messageRefsOf(ids) }),
);

/** Like `cancelById`, for messages that `findCandidates` found. Does not count messages that were marked earlier. */
export const cancelCandidates = write(
  CANCEL_TRAITS,
  async (context: WriteContext, args: Omit<CancelArgs, 'ids'>): Promise<number> =>
    (await cancelMessages(context, args)).filter((row) => !isMarked(row)).length,
);

/** Cancels or marks messages, and returns their rows before the change. */
async function cancelMessages(context: WriteContext, args: CancelArgs): Promise<EndingRow[]> {
  const { projectId, keys, ids, nowMs } = args;
  const candidates = await context.tx.query<EndingRow & { id: string }>(
    `select ${ENDING_FIELDS}, c.id
     from messages m lookup contents c on (c.key = m.key) where m.key in (??) order by m.key for update of m`,
    [keys],
  );
  const wanted = ids && new Set(ids);
  // A message of a workflow run is not cancelled alone: only the run as a whole can be cancelled.
  const rows = candidates.filter(
    (row) => row.project_id === projectId && row.run_key === null && (!wanted || wanted.has(row.id)),
  );
  await cancelOrMark(context, rows, { nowMs });
  // Messages that were marked earlier are included: the notification to their worker may have been lost.
  for (const { claim_token } of rows) if (claim_token !== null) context.due.noteCancelled(claim_token);
  return rows;
}

export interface CancelOptions {
  nowMs: number;
  /** Nobody requested the cancel, so CANCEL_REQUESTED is not logged. */
  isUnrequested?: boolean;
}

/** Cancels waiting messages, and marks messages in flight that are not marked yet. */
export async function cancelOrMark(
  context: WriteContext,
  rows: readonly EndingRow[],
  options: CancelOptions,
): Promise<void> {
  await cancelAtOnce(
    context,
    rows.filter((row) => row.claim_token === null),
    options,
  );
  await mark(
    context,
    rows.filter((row) => row.claim_token !== null && !isMarked(row)),
    options,
  );
}

/** Whether the message is in flight and marked, so that the message is cancelled when its attempt ends. */
function isMarked({ claim_token, cancel_requested_at_ms }: EndingRow): boolean {
  return claim_token !== null && cancel_requested_at_ms !== null;
}

/** Removes messages that are not claimed. CANCEL_REQUESTED is not repeated for a message that was marked in flight. */
export async function cancelAtOnce(
  context: WriteContext,
  rows: readonly EndingRow[],
  { nowMs, isUnrequested = false }: CancelOptions,
): Promise<void> {
  if (rows.length === 0) return;
  const { tx, logs } = context;
  const keys = rows.map(({ key }) => key);
  const floors = await lastEventTimes(context, keys);
  await tx.send('delete from messages where key in (??)', [keys]);
  const requested: StoredEvent = [nowMs, codeOfLogState('CANCEL_REQUESTED')];
  const canceled: StoredEvent = [nowMs, codeOfLogState('CANCELED')];
  await logs.append(
    tx,
    rows.map((row) => ({
      projectId: row.project_id,
      key: row.key,
      runKey: row.run_key,
      events: row.cancel_requested_at_ms === null && !isUnrequested ? [requested, canceled] : [canceled],
      floorMs: floors.get(row.key) ?? 0,
    })),
  );
  const queues = rows.flatMap(({ project_id, queue_id, queue_permit }) =>
    queue_id === null || queue_permit === null ? [] : [{ projectId: project_id, queueId: queue_id }],
  );
  // A message past its flow-control key has used capacity of the key, which is now free for the next message.
  const flowKeys = flowRefsOf(
    rows.filter(({ wait_state }) => wait_state === WAIT_STATE.origin || wait_state === WAIT_STATE.project),
  );
  if (queues.length === 0 && flowKeys.length === 0) return;
  await releaseNext(context, { queues, flowKeys }, nowMs);
}

/** Marks messages in flight. A marked message is final when its current attempt ends, whatever the outcome. */
async function mark(
  { tx, logs }: WriteContext,
  rows: readonly EndingRow[],
  { nowMs, isUnrequested = false }: CancelOptions,
): Promise<void> {
  if (rows.length === 0) return;
  const floors = await lastEventTimes(
    { tx, logs },
    rows.map(({ key }) => key),
  );
  // The time is saved, so that later events of the running attempt do not sort before it.
  const marks = rows.map((row) => ({ row, atMs: Math.max(nowMs, floors.get(row.key) ?? 0) }));
  await tx.updateMany(
    'messages',
    'key',
    ['cancel_requested_at_ms'],
    marks.map(({ row, atMs }) => [row.key, atMs]),
  );
  if (isUnrequested) return;
  await logs.append(
    tx,
    marks.map(({ row, atMs }) => ({
      projectId: row.project_id,
      key: row.key,
      runKey: row.run_key,
      events: [[atMs, codeOfLogState('CANCEL_REQUESTED')]],
      floorMs: atMs,
    })),
  );
}
