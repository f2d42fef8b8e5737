/** Makes a message that waits for its due time due at once. */
import type { InProjectAt, MadeDue, MessageId, MessageKey, ProjectId } from '../../../engine/model.ts';
import { flowRefsOf } from '../lanes/flow-lanes.ts';
import { releaseNext } from '../lanes/release-next.ts';
import { WAIT_STATE } from '../lanes/wait-states.ts';
import { keysOf } from '../lists/read-page.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { write } from '../operation.ts';

export interface MakeDueArgs {
  projectId: ProjectId;
  /** Empty if this server cannot have made the id. */
  keys: MessageKey[];
  id: MessageId;
  nowMs: number;
}

interface WaitingRow {
  key: number;
  project_id: number;
  id: string;
  claim_token: number | null;
  due_at_ms: number;
  flow_key: string | null;
  parkings: number | null;
  wait_state: number;
}

/**
 * Makes a message due now. The message may still wait for its queue, flow-control key or endpoint. If its run is parked
 * again, that parking counts as the first.
 */
export const makeDue = write(
  { touches: ({ projectId, keys }) => ({ messages: keys, writes: [projectId] }) },
  async (context: WriteContext, { projectId, keys, id, nowMs }: MakeDueArgs): Promise<MadeDue> => {
    const [row] = await context.tx.query<WaitingRow>(
      `select m.key, m.project_id, c.id, m.claim_token, m.due_at_ms, m.flow_key, m.parkings, m.wait_state
       from messages m lookup contents c on (c.key = m.key) where m.key in (??) for update of m`,
      [keys],
    );
    if (!row || row.project_id !== projectId || row.id !== id) return 'missing';
    if (row.claim_token !== null) return 'attempting';
    if (row.due_at_ms <= nowMs) return 'due';
    const parkings = row.parkings === null ? null : 0;
    await context.tx.send('update messages set due_at_ms = ?, parkings = ? where key = ?', [nowMs, parkings, row.key]);
    if (row.wait_state === WAIT_STATE.due) context.due.note(nowMs);
    if (row.wait_state === WAIT_STATE.flow) await releaseNext(context, { flowKeys: flowRefsOf([row]) }, nowMs);
    return 'due';
  },
  (args: InProjectAt & { id: MessageId }) => ({ ...args, keys: keysOf([args.id]) }),
);
