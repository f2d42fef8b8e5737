/** The message that blocks a queue. */
import type { QueueBlocker } from '../../../engine/lanes/lanes.ts';
import type { MessageId } from '../../../engine/model.ts';

export interface BlockerRow {
  blocker_id: string | null;
  blocked_until_ms: number | null;
}

const HAS_PERMIT = 'm.project_id = q.project_id and m.queue_id = q.id and m.queue_permit is not null';

/** Columns of a query that reads queues `q`. The only parameter is the current time. */
export const BLOCKER_FIELDS = `
  (select case when count(distinct m.queue_permit) >= q.parallelism and count(m.claim_token) = 0 and min(m.due_at_ms) > ?
     then min(m.due_at_ms) end
   from messages m where ${HAS_PERMIT}) as blocked_until_ms,
  (select c.id from messages m lookup contents c on (c.key = m.key)
   where ${HAS_PERMIT} order by m.due_at_ms, m.key limit 1) as blocker_id`;

export function decodeBlocker({ blocker_id, blocked_until_ms }: BlockerRow): { blockedBy?: QueueBlocker } {
  if (blocker_id === null || blocked_until_ms === null) return {};
  return { blockedBy: { messageId: blocker_id as MessageId, dueAtMs: blocked_until_ms } };
}
