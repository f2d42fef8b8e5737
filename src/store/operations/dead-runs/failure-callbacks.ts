/** Resends and cancels failure callbacks (contract W 13.3, 21.5). */
import type { Saved } from '../../../engine/messages/accepted.ts';
import type { InProjectAt, NewMessage } from '../../../engine/model.ts';
import type { Transaction } from '../../driver.ts';
import { positionOfDlqId } from '../lists/page.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { insertMessages } from '../messages/accept.ts';
import { cancelOrMark, ENDING_FIELDS, type EndingRow } from '../messages/cancel.ts';
import { MESSAGE_AT } from '../messages/columns.ts';
import { encodeNewMessage, type StoredNewMessage } from '../messages/rows.ts';
import { write } from '../operation.ts';
import { FAILURE_STATE } from '../runs/run-rows.ts';

interface FailureCallbackArgs extends InProjectAt {
  dlqId: string;
}

interface FailureCallbackRow {
  run_key: number;
  failure_key: number | null;
  failure_state: number | null;
}

async function failureCallbackRowOf(
  tx: Transaction,
  { projectId, dlqId }: FailureCallbackArgs,
): Promise<FailureCallbackRow | undefined> {
  const position = positionOfDlqId(dlqId);
  if (!position) return undefined;
  const [row] = await tx.query<FailureCallbackRow>(
    `select r.key as run_key, r.failure_key, r.failure_state from dead d lookup runs r on (r.key = d.run_key)
     where d.key = ? and d.failed_at_ms = ? and d.project_id = ? for update`,
    [position.n, position.timeMs, projectId],
  );
  return row;
}

/** Saves a new failure callback, if the last failure callback has failed. */
export const repeatFailureCallback = write(
  {},
  async (
    context: WriteContext,
    args: FailureCallbackArgs & { message: StoredNewMessage },
  ): Promise<Saved | 'missing' | 'notFailed'> => {
    const { tx } = context;
    const row = await failureCallbackRowOf(tx, args);
    if (!row) return 'missing';
    if (row.failure_state !== FAILURE_STATE.fail) return 'notFailed';
    await tx.send('update runs set failure_key = ?, failure_state = ? where key = ?', [
      args.message.message[MESSAGE_AT.key],
      FAILURE_STATE.inProgress,
      row.run_key,
    ]);
    const [saved] = await insertMessages(context, [args.message], args.nowMs);
    if (saved === undefined) throw new Error('a failure callback was not saved');
    return saved;
  },
  (args: FailureCallbackArgs & { message: NewMessage }) => ({ ...args, message: encodeNewMessage(args.message) }),
);

/** Cancels the failure callback. An attempt in flight may still succeed; then the callback counts as delivered. */
export const cancelFailureCallback = write(
  async (context: WriteContext, args: FailureCallbackArgs): Promise<'canceled' | 'missing' | 'notInProgress'> => {
    const { tx } = context;
    const row = await failureCallbackRowOf(tx, args);
    if (!row) return 'missing';
    if (row.failure_state !== FAILURE_STATE.inProgress) return 'notInProgress';
    const rows = await tx.query<EndingRow>(`select ${ENDING_FIELDS} from messages m where key = ? for update`, [
      row.failure_key,
    ]);
    await tx.send('update runs set failure_state = ? where key = ?', [FAILURE_STATE.canceled, row.run_key]);
    await cancelOrMark(context, rows, { nowMs: args.nowMs });
    return 'canceled';
  },
);
